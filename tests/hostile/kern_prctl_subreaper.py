# group: kernel
# input: 1
# expect: ok:[-1, 13]|violation
# why: adopts orphans
import ctypes
def f(x): return [ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0), ctypes.get_errno()]
