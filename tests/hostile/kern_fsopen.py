# group: kernel
# input: 1
# expect: violation
# why: the new mount interface
import ctypes
def f(x):
    return ctypes.CDLL(None).syscall(430, b'tmpfs', 0)
