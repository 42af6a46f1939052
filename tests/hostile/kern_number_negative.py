# group: kernel
# input: 1
# expect: violation|ok:[-1, 38]
# why: minus one as a number
import ctypes
def f(x):
    return ctypes.CDLL(None).syscall(-1, 0)
