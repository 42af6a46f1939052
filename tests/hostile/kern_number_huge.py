# group: kernel
# input: 1
# expect: violation
# why: a number beyond every table
import ctypes
def f(x):
    return ctypes.CDLL(None).syscall(2147483647, 0)
