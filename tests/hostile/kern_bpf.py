# group: kernel
# input: 1
# expect: violation
# why: creates an eBPF map
import ctypes, sys
def f(x):
    return ctypes.CDLL(None).syscall((321, 280)['aarch64' in sys.implementation._multiarch], 0, (ctypes.c_uint32 * 16)(1, 4, 4, 1), 64)
