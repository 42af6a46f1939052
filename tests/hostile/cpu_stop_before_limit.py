# group: cpu
# input: 1
# expect: ok:1
# why: busy for 50 ms, which is allowed
import time
def f(x):
    end = time.process_time() + 0.05
    while time.process_time() < end: pass
    return 1
