# group: kernel
# input: 1
# expect: violation|ok:[-1, 13]
# why: a clock as a descriptor
import ctypes, sys
def f(x):
    return [ctypes.CDLL(None, use_errno=True).syscall((283, 85)['aarch64' in sys.implementation._multiarch], 0, 0), ctypes.get_errno()]
