# group: stack
# input: 1
# expect: crash|memory|exc:RecursionError
# why: a quarter of a million iterators around each other, advanced in C without a check
def f(x):
    m = iter([1])
    for _ in range(250_000): m = map(abs, m)
    return next(m)
