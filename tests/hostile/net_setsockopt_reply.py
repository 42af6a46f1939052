# group: net
# input: 1
# expect: ok:[-1, 13]|violation
# why: socket options of the reply socket, a zero-length linger among them
import ctypes
def f(x): return [ctypes.CDLL(None, use_errno=True).setsockopt(3, 1, 13, (ctypes.c_int * 2)(1, 0), 8), ctypes.get_errno()]
