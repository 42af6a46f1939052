# group: kernel
# input: 1
# expect: violation
# why: compares kernel objects with the parent's
import ctypes, sys
def f(x):
    import os
    return ctypes.CDLL(None).syscall((312, 272)['aarch64' in sys.implementation._multiarch], os.getpid(), os.getppid(), 0, 3, 3)
