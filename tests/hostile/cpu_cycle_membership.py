# group: cpu
# input: 1
# expect: timeout
# why: membership test in an endless iterator, all in C
import itertools
def f(x): return 1 in itertools.repeat(0, 10**10)
