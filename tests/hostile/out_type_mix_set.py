# group: output
# input: 1
# expect: ok:{'1', 1, None}
# why: a set of different types has one order, that of its texts
def f(x): return {1, '1', None}
