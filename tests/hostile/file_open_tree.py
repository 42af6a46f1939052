# group: file
# input: 1
# expect: violation|ok:[-1, 13]
# why: the new mount interface hands out descriptors too
import ctypes
def f(x): return [ctypes.CDLL(None, use_errno=True).syscall(428, -100, b'/', 1), ctypes.get_errno()]
