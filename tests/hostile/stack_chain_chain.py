# group: stack
# input: 1
# expect: crash|memory|timeout|exc:RecursionError
# why: the same with itertools.chain
import itertools
def f(x):
    c = iter(())
    for _ in range(250_000): c = itertools.chain(c, ())
    return list(c)
