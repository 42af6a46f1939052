# group: net
# input: 1
# expect: ok:[-1, 13]|violation
# why: shuts the reply socket in both directions
import ctypes
def f(x): return [ctypes.CDLL(None, use_errno=True).shutdown(3, 2), ctypes.get_errno()]
