# group: process
# input: 1
# expect: violation|ok:[-1, 13]
# why: takes the parent's first descriptor by pidfd
import ctypes, os
def f(x):
    libc = ctypes.CDLL(None, use_errno=True)
    return [libc.syscall(438, libc.syscall(434, os.getppid(), 0), 0, 0), ctypes.get_errno()]
