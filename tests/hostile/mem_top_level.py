# group: memory
# input: 1
# expect: memory
# why: allocated by the source, not by the call
BIG = [0] * (1 << 28)
def f(x): return 1
