# group: kernel
# input: 1
# expect: violation
# why: a filter of its own with a listener that could rewrite results
import ctypes, sys
def f(x):
    return ctypes.CDLL(None).syscall((317, 277)['aarch64' in sys.implementation._multiarch], 1, 8, None)
