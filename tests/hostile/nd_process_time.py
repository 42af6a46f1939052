# group: nondet
# input: 1
# expect: nondet
# why: its own CPU time
import time
def f(x): return time.process_time_ns()
