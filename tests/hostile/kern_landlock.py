# group: kernel
# input: 1
# expect: violation|ok:[-1, 13]
# why: one more sandbox interface to poke at
import ctypes
def f(x):
    return [ctypes.CDLL(None, use_errno=True).syscall(444, None, 0, 1), ctypes.get_errno()]
