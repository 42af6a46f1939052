# group: kernel
# input: 1
# expect: ok:[-1, 13]|violation
# why: priority-inheritance futexes are the kernel's most exploited part of a call that the interpreter does need
import ctypes, sys
def f(x):
    word = ctypes.c_uint32(0)
    return [ctypes.CDLL(None, use_errno=True).syscall((202, 98)['aarch64' in sys.implementation._multiarch], ctypes.byref(word), 6 | 128, 0, None, None, 0), ctypes.get_errno()]
