# group: kernel
# input: 1
# expect: violation
# why: strict mode on top of the filter
import ctypes, sys
def f(x):
    return ctypes.CDLL(None).syscall((317, 277)['aarch64' in sys.implementation._multiarch], 0, 0, None)
