# group: kernel
# input: 1
# expect: ok:[-1, 13]|violation
# why: the old way to install a filter
import ctypes
def f(x): return [ctypes.CDLL(None, use_errno=True).prctl(22, 2, None, 0, 0), ctypes.get_errno()]
