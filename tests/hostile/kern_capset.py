# group: kernel
# input: 1
# expect: violation|ok:[-1, 13]
# why: asks for every capability
import ctypes, sys
def f(x):
    return [ctypes.CDLL(None, use_errno=True).syscall((126, 91)['aarch64' in sys.implementation._multiarch], (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(*[2**32 - 1] * 6)), ctypes.get_errno()]
