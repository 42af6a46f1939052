# group: kernel
# input: 1
# expect: violation|ok:[-1, 13]
# why: a counter as a descriptor
import ctypes, sys
def f(x):
    return [ctypes.CDLL(None, use_errno=True).syscall((290, 19)['aarch64' in sys.implementation._multiarch], 0, 0), ctypes.get_errno()]
