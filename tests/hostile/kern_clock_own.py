# group: kernel
# input: 1
# expect: ok:True
# why: the usual clocks, its own CPU time among them, work
import time
def f(x):
    clocks = (0, 1, 2, 3, 4, 5, 6, 7)
    return all(time.clock_gettime(clock) > 0 and time.clock_getres(clock) > 0 for clock in clocks) and time.thread_time() > 0
