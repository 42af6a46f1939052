# group: kernel
# input: 1
# expect: violation|ok:[-1, 13]
# why: asks the security modules
import ctypes
def f(x):
    return [ctypes.CDLL(None, use_errno=True).syscall(459, 100, None, None, 0), ctypes.get_errno()]
