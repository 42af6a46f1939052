# group: cpu
# input: 1
# expect: violation
# why: would sleep on a futex for a minute without any CPU time
import ctypes, sys
def f(x):
    word, minute = ctypes.c_uint32(0), (ctypes.c_long * 2)(60, 0)
    return ctypes.CDLL(None).syscall((202, 98)['aarch64' in sys.implementation._multiarch], ctypes.byref(word), 128, 0, minute, None, 0)
