# group: process
# input: 1
# expect: ok:[-1, 13]|violation
# why: execveat by number with AT_EMPTY_PATH
import ctypes, sys
def f(x): return [ctypes.CDLL(None, use_errno=True).syscall((322, 281)['aarch64' in sys.implementation._multiarch], -100, b'/bin/true', None, None, 0x1000), ctypes.get_errno()]
