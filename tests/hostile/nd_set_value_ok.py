# group: nondet
# input: 1
# expect: ok:{'alpha', 'beta', 'gamma'}
# why: a set as a value is written in one order whatever the seed
def f(x): return {'gamma', 'alpha', 'beta'}
