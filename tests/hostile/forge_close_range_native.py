# group: forge
# input: 1
# expect: noresult
# why: close_range by number, then an ordinary return
import ctypes
def f(x):
    ctypes.CDLL(None).syscall(436, 0, ctypes.c_uint(-1), 0)
    return 42
