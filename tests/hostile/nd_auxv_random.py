# group: nondet
# input: 1
# expect: nondet
# why: the sixteen random bytes that the kernel leaves for the loader
import ctypes
def f(x):
    libc = ctypes.CDLL(None)
    libc.getauxval.restype = ctypes.c_ulong
    return ctypes.string_at(libc.getauxval(25), 16)
