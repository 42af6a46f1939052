# group: kernel
# input: 1
# expect: violation|ok:[-1, 13]
# why: a newer futex that the old filter does not cover
import ctypes
def f(x):
    return [ctypes.CDLL(None, use_errno=True).syscall(449, None, 0, 0, None, 0), ctypes.get_errno()]
