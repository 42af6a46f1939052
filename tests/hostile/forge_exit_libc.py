# group: forge
# input: 1
# expect: noresult
# why: libc exit() runs C exit handlers and stdio flushes
import ctypes
def f(x): ctypes.CDLL(None).exit(0)
