# group: kernel
# input: 1
# expect: violation|ok:[-1, 13]
# why: a mapping that is executable and nothing else
import ctypes, sys
def f(x):
    return [ctypes.CDLL(None, use_errno=True).syscall((9, 222)['aarch64' in sys.implementation._multiarch], None, 4096, 4, 0x22, -1, 0), ctypes.get_errno()]
