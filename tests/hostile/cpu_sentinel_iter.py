# group: cpu
# input: 1
# expect: timeout
# why: max() of an iterator that never meets its sentinel
def f(x): return max(iter(int, 1))
