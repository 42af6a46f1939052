# group: signal
# input: 1
# expect: ok:[-1, 13]|violation
# why: would survive the death of its supervisor
import ctypes
def f(x): return [ctypes.CDLL(None, use_errno=True).prctl(1, 0, 0, 0, 0), ctypes.get_errno()]
