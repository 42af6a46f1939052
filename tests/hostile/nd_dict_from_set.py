# group: nondet
# input: 1
# expect: nondet
# why: dict order inherited from a set of strings
def f(x): return list(dict.fromkeys({'k%d' % i for i in range(40)}))
