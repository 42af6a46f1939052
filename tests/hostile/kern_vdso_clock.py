# group: kernel
# input: 1
# expect: ok:True
# why: clock reads are allowed, native ones too
import ctypes
def f(x):
    spec = (ctypes.c_long * 2)()
    return ctypes.CDLL(None).clock_gettime(1, spec) == 0 and spec[0] > 0
