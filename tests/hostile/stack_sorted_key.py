# group: stack
# input: 1
# expect: crash|memory|exc:RecursionError|timeout
# why: Python called from C called from Python, with the limit lifted
import sys
def key(n): return sorted([n + 1], key=key)
def f(x):
    sys.setrecursionlimit(10**8)
    return key(0)
