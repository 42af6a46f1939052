# group: signal
# input: 1
# expect: exc:itimer_error|exc:PermissionError|violation
# why: a profiling timer
import signal
def f(x): return signal.setitimer(signal.ITIMER_PROF, 50)
