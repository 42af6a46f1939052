# group: kernel
# input: 1
# expect: ok:[-1, 13]|violation
# why: capability rules of the process
import ctypes
def f(x): return [ctypes.CDLL(None, use_errno=True).prctl(28, 0, 0, 0, 0), ctypes.get_errno()]
