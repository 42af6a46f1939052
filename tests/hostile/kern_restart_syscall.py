# group: kernel
# input: 1
# expect: violation|ok:[-1, 13]|ok:[-1, 4]
# why: resumes a call that never was
import ctypes, sys
def f(x):
    return [ctypes.CDLL(None, use_errno=True).syscall((219, 128)['aarch64' in sys.implementation._multiarch], 0), ctypes.get_errno()]
