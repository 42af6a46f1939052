# group: process
# input: 1
# expect: ok:[-1, 13]|violation
# why: clone3 with a filled structure: arguments that a filter cannot see
import ctypes
def f(x):
    args = (ctypes.c_uint64 * 11)(0, 0, 0, 0, 17)
    libc = ctypes.CDLL(None, use_errno=True)
    n = libc.syscall(435, args, 64)
    if n == 0: libc._exit(0)
    return [n, ctypes.get_errno()]
