# group: memory
# input: 1
# expect: memory|timeout
# why: the iterator copies its pool before the first item
import itertools
def f(x): return next(itertools.permutations(range(40_000_000), 1))
