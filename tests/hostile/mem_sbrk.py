# group: memory
# input: 1
# expect: ok:True
# why: the old heap call is under the same limit
import ctypes
def f(x):
    libc = ctypes.CDLL(None)
    libc.sbrk.restype = ctypes.c_void_p
    return libc.sbrk(ctypes.c_ssize_t(1 << 31)) == ctypes.c_void_p(-1).value
