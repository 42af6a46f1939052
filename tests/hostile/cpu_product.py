# group: cpu
# input: 1
# expect: timeout
# why: ten to the twentieth combinations, counted in C
import collections, itertools
def f(x):
    collections.deque(itertools.product(range(10), repeat=20), maxlen=0)
    return 1
