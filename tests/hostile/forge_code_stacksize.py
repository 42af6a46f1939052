# group: forge
# input: 1
# expect: crash|exc:SystemError
# why: a code object that lies about its stack size
def g(x): return [x, [x, [x, [x, [x, [x, [x, [x, [x]]]]]]]], (x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x)]
def f(x):
    for _ in range(100): g.__code__ = g.__code__.replace(co_stacksize=0)
    rec = lambda n: g(x) if n == 0 else [rec(n - 1)]
    for n in range(400): rec(n % 50)
    raise SystemError
