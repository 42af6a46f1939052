# group: kernel
# input: 1
# expect: violation|ok:[-1, 13]
# why: priorities of its whole group
import ctypes, sys
def f(x):
    return [ctypes.CDLL(None, use_errno=True).syscall((251, 30)['aarch64' in sys.implementation._multiarch], 2, 0, 0), ctypes.get_errno()]
