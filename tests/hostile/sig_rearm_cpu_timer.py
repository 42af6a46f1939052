# group: signal
# input: 1
# expect: timeout|violation
# why: sets its CPU limit to an hour
import ctypes, sys
def f(x):
    hour = (ctypes.c_long * 4)(0, 0, 3600, 0)
    for n in range(16): ctypes.CDLL(None).syscall((223, 110)['aarch64' in sys.implementation._multiarch], n, 0, hour, None)
    for _ in range(2 * 10**9): pass
