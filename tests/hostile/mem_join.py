# group: memory
# input: 1
# expect: memory
# why: one join over a repeated reference
def f(x): return len(''.join(['x' * 10**6] * 2000))
