# group: output
# input: 1
# expect: toolong
# why: many small items
def f(x): return list(range(10_000))
