# group: nondet
# input: 1
# expect: nondet
# why: a NaN hashes by address
def f(x): return hash(float('nan'))
