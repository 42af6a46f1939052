# group: kernel
# input: 1
# expect: ok:[-1, 13]|violation
# why: a dumpable process can be traced by others of its user
import ctypes
def f(x): return [ctypes.CDLL(None, use_errno=True).prctl(4, 1, 0, 0, 0), ctypes.get_errno()]
