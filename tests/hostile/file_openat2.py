# group: file
# input: 1
# expect: ok:[-1, 13]|violation
# why: openat2 passes its flags in memory, out of a filter's sight
import ctypes
def f(x): return [ctypes.CDLL(None, use_errno=True).syscall(437, -100, b'/etc/passwd', (ctypes.c_uint64 * 3)(0, 0, 0), 24), ctypes.get_errno()]
