# group: stack
# input: 1
# expect: memory|timeout|crash
# why: pure Python recursion with the limit lifted: heap, not stack
import sys
def g(n): return g(n + 1)
def f(x):
    sys.setrecursionlimit(10**9)
    return g(0)
