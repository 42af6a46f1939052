# group: stack
# input: 1
# expect: crash
# why: a write into the text of libc
import ctypes
def f(x):
    at = ctypes.cast(ctypes.CDLL(None).getpid, ctypes.c_void_p).value
    ctypes.memset(at, 0, 4)
