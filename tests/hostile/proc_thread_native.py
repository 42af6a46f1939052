# group: process
# input: 1
# expect: ok:True|violation
# why: pthread_create returns an error number
import ctypes
def f(x):
    libc = ctypes.CDLL(None)
    handle = ctypes.c_ulong()
    return libc.pthread_create(ctypes.byref(handle), None, libc.getpid, None) != 0
