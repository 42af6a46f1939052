# group: file
# input: 1
# expect: ok:[-1, 13]|violation
# why: the newer access call
import ctypes
def f(x): return [ctypes.CDLL(None, use_errno=True).syscall(439, -100, b'/etc/passwd', 0, 0), ctypes.get_errno()]
