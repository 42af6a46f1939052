# group: kernel
# input: 1
# expect: violation|ok:[-1, 13]
# why: a recent call that old tables do not know
import ctypes
def f(x):
    return [ctypes.CDLL(None, use_errno=True).syscall(443, 3, 0, 0, None), ctypes.get_errno()]
