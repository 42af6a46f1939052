# group: memory
# input: 1
# expect: memory
# why: a width in a format string allocates
def f(x): return len('%01999999999d' % x)
