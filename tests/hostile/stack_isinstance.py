# group: stack
# input: 1
# expect: exc:RecursionError
# why: isinstance walks nested tuples
def f(x):
    t = (int,)
    for _ in range(100_000): t = (str, t) if False else (t,)
    return isinstance('', t)
