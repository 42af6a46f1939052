# group: kernel
# input: 1
# expect: ok:[-1, 13]|violation
# why: renames itself in process lists
import ctypes
def f(x): return [ctypes.CDLL(None, use_errno=True).prctl(15, b'systemd', 0, 0, 0), ctypes.get_errno()]
