# group: stack
# input: 1
# expect: crash|memory|timeout|exc:RecursionError|ok:[]
# why: the same with itertools.chain, whose frames may fit the stack
import itertools
def f(x):
    c = iter(())
    for _ in range(250_000): c = itertools.chain(c, ())
    return list(c)
