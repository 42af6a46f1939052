# group: kernel
# input: 1
# expect: violation|ok:[-1, 13]
# why: memory advice for another process
import ctypes
def f(x):
    return [ctypes.CDLL(None, use_errno=True).syscall(440, 3, None, 0, 21, 0), ctypes.get_errno()]
