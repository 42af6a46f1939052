# group: nondet
# input: 1
# expect: nondet
# why: where libc was loaded
import ctypes
def f(x): return ctypes.cast(ctypes.CDLL(None).getpid, ctypes.c_void_p).value
