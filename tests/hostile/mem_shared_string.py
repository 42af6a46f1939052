# group: memory
# input: 1
# expect: toolong
# why: one string, ten thousand times in the result
def f(x): return ['x' * 10000] * 10000
