# group: process
# input: 1
# expect: ok:[-1, 13]|violation
# why: clone with shared memory flags, by number: a child without fork
import ctypes, sys
def f(x):
    libc = ctypes.CDLL(None, use_errno=True)
    n = libc.syscall((56, 220)['aarch64' in sys.implementation._multiarch], 17, 0, 0, 0, 0)
    if n == 0: libc._exit(0)
    return [n, ctypes.get_errno()]
