# group: forge
# input: 3
# expect: opaque
# why: a generator has no value until someone runs it
def f(x):
    for i in range(x):
        yield i
