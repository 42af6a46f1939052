# group: memory
# input: 1
# expect: memory|timeout
# why: tee keeps what the slower half has not read
import itertools
def f(x):
    a, b = itertools.tee(itertools.repeat('x', 200_000_000))
    for _ in a: pass
    return 1
