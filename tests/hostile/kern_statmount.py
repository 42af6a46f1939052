# group: kernel
# input: 1
# expect: violation|ok:[-1, 13]
# why: a call newer than most filters: unknown means no
import ctypes
def f(x):
    return [ctypes.CDLL(None, use_errno=True).syscall(457, None, None, 0, 0), ctypes.get_errno()]
