# group: kernel
# input: 1
# expect: ok:[-1, 13]|violation
# why: the requeue operation behind a well-known root exploit
import ctypes, sys
def f(x):
    words = (ctypes.c_uint32 * 2)(0, 0)
    return [ctypes.CDLL(None, use_errno=True).syscall((202, 98)['aarch64' in sys.implementation._multiarch], words, 12 | 128, 1, 0, ctypes.byref(words, 4), 0), ctypes.get_errno()]
