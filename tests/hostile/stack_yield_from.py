# group: stack
# input: 1
# expect: exc:RecursionError
# why: a tower of delegating generators
def g(n):
    if n: yield from g(n - 1)
    yield n
def f(x): return sum(g(50_000))
