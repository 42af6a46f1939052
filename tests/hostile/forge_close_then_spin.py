# group: forge
# input: 1
# expect: timeout|noresult
# why: closing the reply socket must not end the supervision
import os
def f(x):
    os.close(3)
    for _ in range(2 * 10**9): pass
