# group: stack
# input: 1
# expect: crash
# why: a double free in the C heap: glibc aborts
import ctypes
def f(x):
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    p = ctypes.c_void_p(libc.malloc(64))
    libc.free(p); libc.free(p); libc.free(p)
    return 1
