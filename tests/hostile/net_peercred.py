# group: net
# input: 1
# expect: ok:[-1, 13]|violation
# why: asks who the supervisor is
import ctypes
def f(x):
    cred, size = (ctypes.c_int * 3)(), ctypes.c_int(12)
    return [ctypes.CDLL(None, use_errno=True).getsockopt(3, 1, 17, cred, ctypes.byref(size)), ctypes.get_errno()]
