# group: kernel
# input: 1
# expect: violation|ok:[-1, 13]
# why: moves the parent's pages
import ctypes, sys
def f(x):
    import os
    return [ctypes.CDLL(None, use_errno=True).syscall((279, 239)['aarch64' in sys.implementation._multiarch], os.getppid(), 0, None, None, None, 0), ctypes.get_errno()]
