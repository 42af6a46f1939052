# group: signal
# input: 1
# expect: timeout|violation
# why: ignores all signals by number, then spins
import ctypes, sys
def f(x):
    action = (ctypes.c_ulong * 4)(1, 0, 0, 0)
    for n in range(1, 65): ctypes.CDLL(None).syscall((13, 134)['aarch64' in sys.implementation._multiarch], n, action, None, 8)
    for _ in range(2 * 10**9): pass
