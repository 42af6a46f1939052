# group: kernel
# input: 1
# expect: violation|ok:[-1, 13]|ok:[-1, 19]
# why: maps the reply descriptor as a file
import ctypes, sys
def f(x):
    return [ctypes.CDLL(None, use_errno=True).syscall((9, 222)['aarch64' in sys.implementation._multiarch], None, 4096, 1, 1, 3, 0), ctypes.get_errno()]
