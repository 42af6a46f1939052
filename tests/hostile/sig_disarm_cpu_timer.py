# group: signal
# input: 1
# expect: timeout|violation
# why: deletes the first POSIX timers, one of which is its CPU limit
import ctypes, sys
def f(x):
    for n in range(16): ctypes.CDLL(None).syscall((226, 111)['aarch64' in sys.implementation._multiarch], n)
    for _ in range(2 * 10**9): pass
