# group: file
# input: 1
# expect: ok:[-1, 13]|violation
# why: openat by number with O_PATH
import ctypes, sys
def f(x): return [ctypes.CDLL(None, use_errno=True).syscall((257, 56)['aarch64' in sys.implementation._multiarch], -100, b'/', 0o10000000, 0), ctypes.get_errno()]
