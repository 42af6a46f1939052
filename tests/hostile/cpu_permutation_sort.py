# group: cpu
# input: 1
# expect: timeout
# why: an honest but hopeless algorithm
import itertools
def f(x): return next(p for p in itertools.permutations(range(13)) if list(p) == sorted(p, reverse=True))
