# group: cpu
# input: 1
# expect: ok:[-1, 13]
# why: the C library's sleep
import ctypes
def f(x): return [ctypes.CDLL(None, use_errno=True).usleep(60_000_000), ctypes.get_errno()]
