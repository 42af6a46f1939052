# group: forge
# input: 1
# expect: crash|noresult
# why: the caller's frame object is overwritten with 0xff
import ctypes, sys
def f(x):
    ctypes.memset(id(sys._getframe(1)) + 16, 0xff, 64)
    ctypes.memset(id(sys._getframe(1).f_code) + 16, 0xff, 64)
    return 1
