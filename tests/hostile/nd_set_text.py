# group: nondet
# input: 1
# expect: nondet
# why: the repr of a set is its order
def f(x): return str(set('abcdefghijklmnop'))
