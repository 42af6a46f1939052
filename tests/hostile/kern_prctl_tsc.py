# group: kernel
# input: 1
# expect: ok:[-1, 13]|violation
# why: makes clock reads fault
import ctypes
def f(x): return [ctypes.CDLL(None, use_errno=True).prctl(26, 2, 0, 0, 0), ctypes.get_errno()]
