# group: signal
# input: 1
# expect: ok:[-1, 13]|violation
# why: a timer of its own that signals every process it may name
import ctypes, sys
def f(x):
    timer = ctypes.c_int()
    return [ctypes.CDLL(None, use_errno=True).syscall((222, 107)['aarch64' in sys.implementation._multiarch], 1, None, ctypes.byref(timer)), ctypes.get_errno()]
