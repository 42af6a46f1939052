# group: kernel
# input: 1
# expect: ok:[-1, 13]|violation
# why: lets anybody trace it
import ctypes
def f(x): return [ctypes.CDLL(None, use_errno=True).prctl(0x59616d61, -1, 0, 0, 0), ctypes.get_errno()]
