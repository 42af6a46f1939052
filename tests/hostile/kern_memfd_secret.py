# group: kernel
# input: 1
# expect: violation|ok:[-1, 13]
# why: memory that not even the kernel maps
import ctypes
def f(x):
    return [ctypes.CDLL(None, use_errno=True).syscall(447, 0), ctypes.get_errno()]
