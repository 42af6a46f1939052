# group: nondet
# input: 1
# expect: nondet
# why: a nanosecond clock
import time
def f(x): return time.perf_counter_ns()
