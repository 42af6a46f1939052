# group: cpu
# input: 1
# expect: timeout
# why: time spent in the kernel counts too
import os
def f(x):
    for _ in range(10**9): os.getppid()
