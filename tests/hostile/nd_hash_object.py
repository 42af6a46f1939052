# group: nondet
# input: 1
# expect: nondet
# why: the default hash is an address
def f(x): return hash(object())
