# group: nondet
# input: 1
# expect: ok:[5, 2305843009213693950, 2]
# why: hashes of numbers do not depend on the seed
def f(x): return [hash(5), hash(2**61 - 2), hash(2.0)]
