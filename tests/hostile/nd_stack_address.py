# group: nondet
# input: 1
# expect: nondet
# why: address layout seen natively
import ctypes
def f(x): return ctypes.addressof(ctypes.create_string_buffer(64 << 10))
