# group: nondet
# input: 1
# expect: nondet
# why: a hash made of string hashes
def f(x): return hash(frozenset('queens'))
