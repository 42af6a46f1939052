# group: kernel
# input: 1
# expect: violation
# why: would write into the parent; zero vectors, so harmless if allowed
import ctypes, sys
def f(x):
    import os
    vector = (ctypes.c_void_p * 2)(0, 0)
    return ctypes.CDLL(None).syscall((311, 271)['aarch64' in sys.implementation._multiarch], os.getppid(), vector, 0, vector, 0, 0)
