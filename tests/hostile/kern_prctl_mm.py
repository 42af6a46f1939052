# group: kernel
# input: 1
# expect: ok:[-1, 13]|violation
# why: moves its argument area, which ps reads
import ctypes
def f(x): return [ctypes.CDLL(None, use_errno=True).prctl(35, 8, 0, 0, 0), ctypes.get_errno()]
