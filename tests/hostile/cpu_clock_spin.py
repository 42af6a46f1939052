# group: cpu
# input: 1
# expect: timeout
# why: waits by watching the clock
import time
def f(x):
    end = time.monotonic() + 60
    while time.monotonic() < end: pass
    return 1
