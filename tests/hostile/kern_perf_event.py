# group: kernel
# input: 1
# expect: violation
# why: performance counters are a side channel
import ctypes, sys
def f(x):
    return ctypes.CDLL(None).syscall((298, 241)['aarch64' in sys.implementation._multiarch], (ctypes.c_uint32 * 32)(1, 128), 0, -1, -1, 0)
