# group: source
# input: 30
# expect: ok:832040
# why: a cached recursive f
import functools
@functools.lru_cache(maxsize=None)
def f(n): return n if n < 2 else f(n - 1) + f(n - 2)
