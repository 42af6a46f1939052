# group: nondet
# input: 1
# expect: nondet
# why: the order of a set of tuples of strings
def f(x): return list({(a, b) for a in 'abcdef' for b in 'uvwxyz'})
