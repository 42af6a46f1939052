# group: process
# input: 1
# expect: ok:[-1, 13]|violation
# why: clone asks for a user and a network namespace at once
import ctypes, sys
def f(x):
    libc = ctypes.CDLL(None, use_errno=True)
    n = libc.syscall((56, 220)['aarch64' in sys.implementation._multiarch], 0x10000000 | 0x40000000 | 17, 0, 0, 0, 0)
    if n == 0: libc._exit(0)
    return [n, ctypes.get_errno()]
