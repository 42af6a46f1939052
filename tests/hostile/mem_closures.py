# group: memory
# input: 1
# expect: memory|timeout
# why: a chain of closures, each keeping the one before
def f(x):
    g = None
    for _ in range(8_000_000):
        g = (lambda h: lambda: h)(g)
    return 1
