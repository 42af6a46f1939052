# group: file
# input: 1
# expect: ok:[(-1, 13), (-1, 13)]|violation
# why: the kernel drops the upper half of a descriptor, a filter must too
import ctypes, sys
def f(x):
    libc = ctypes.CDLL(None, use_errno=True)
    return [(libc.syscall((1, 64)['aarch64' in sys.implementation._multiarch], ctypes.c_uint64((1 << 32) + fd), b'leak', 4), ctypes.get_errno()) for fd in (1, 2)]
