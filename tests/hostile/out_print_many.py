# group: output
# input: 1
# expect: toolong|exc:OSError
# why: over the limit in small pieces
def f(x):
    for i in range(60_000): print(i % 10)
    return 1
