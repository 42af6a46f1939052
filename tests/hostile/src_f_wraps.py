# group: source
# input: 2
# expect: ok:[4]
# why: a decorator of its own
import functools
def listed(g):
    @functools.wraps(g)
    def inner(*a, **k): return [g(*a, **k)]
    return inner
@listed
def f(x): return x * 2
