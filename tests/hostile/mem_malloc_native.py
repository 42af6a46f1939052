# group: memory
# input: 1
# expect: ok:True
# why: native allocation is under the same limit
import ctypes
def f(x):
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    return libc.malloc(ctypes.c_size_t(1 << 31)) is None
