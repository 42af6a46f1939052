# group: kernel
# input: 1
# expect: violation
# why: asks its parent to trace it
import ctypes, sys
def f(x):
    return ctypes.CDLL(None).syscall((101, 117)['aarch64' in sys.implementation._multiarch], 0, 0, None, None)
