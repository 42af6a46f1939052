# group: file
# input: 1
# expect: violation|ok:[-1, 13]
# why: watches what others do with files
import ctypes
def f(x): return [ctypes.CDLL(None, use_errno=True).inotify_init1(0), ctypes.get_errno()]
