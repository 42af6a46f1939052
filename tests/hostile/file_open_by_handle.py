# group: file
# input: 1
# expect: violation|ok:[-1, 13]
# why: opens by inode, the way out of many containers
import ctypes, sys
def f(x):
    handle = (ctypes.c_uint32 * 4)(8, 1, 2, 0)
    return [ctypes.CDLL(None, use_errno=True).syscall((304, 265)['aarch64' in sys.implementation._multiarch], -100, handle, 0), ctypes.get_errno()]
