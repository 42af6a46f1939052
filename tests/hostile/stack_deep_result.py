# group: stack
# input: 1
# expect: toolong
# why: a result nested 100,000 deep
def f(x):
    a = 0
    for _ in range(100_000): a = (a,)
    return a
