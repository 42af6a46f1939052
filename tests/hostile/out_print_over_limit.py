# group: output
# input: 1
# expect: toolong|exc:OSError
# why: one character more
def f(x):
    print('x' * 100_000)
    return 1
