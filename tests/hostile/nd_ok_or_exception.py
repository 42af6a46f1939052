# group: nondet
# input: 1
# expect: nondet
# why: one run has a value and the other an exception
def f(x):
    words = list({'w%d' % i for i in range(200)})
    return [w for w in words if w > words[0]]
