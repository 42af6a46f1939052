# group: output
# input: 1
# expect: toolong
# why: a hundred levels are not
def f(x):
    for _ in range(100): x = [x]
    return x
