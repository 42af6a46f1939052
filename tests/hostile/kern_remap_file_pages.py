# group: kernel
# input: 1
# expect: violation|ok:[-1, 13]
# why: an old call with old bugs
import ctypes, sys
def f(x):
    return [ctypes.CDLL(None, use_errno=True).syscall((216, 234)['aarch64' in sys.implementation._multiarch], None, 4096, 4, 0, 0), ctypes.get_errno()]
