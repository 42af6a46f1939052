# group: stack
# input: 1
# expect: toolong
# why: the same with dict values
def f(x):
    d = 0
    for _ in range(50_000): d = {0: d}
    return d
