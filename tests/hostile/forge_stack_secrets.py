# group: forge
# input: 1
# expect: ok:False
# why: what execve left above the stack (arguments, environment, path) holds no secret
import ctypes
def f(x):
    libc = ctypes.CDLL(None)
    libc.getauxval.restype = ctypes.c_ulong
    at = libc.getauxval(31)
    start = libc.getauxval(25)
    return b'SECRET' in ctypes.string_at(start, at - start).upper() if 0 < at - start < 1 << 20 else False
