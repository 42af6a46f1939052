# group: stack
# input: 1
# expect: exc:RecursionError
# why: repr of a list nested 100,000 deep
def f(x):
    a = []
    for _ in range(100_000): a = [a]
    return len(repr(a))
