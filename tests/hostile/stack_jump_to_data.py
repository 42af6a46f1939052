# group: stack
# input: 1
# expect: crash
# why: calls a buffer as if it were a function
import ctypes
def f(x):
    code = ctypes.create_string_buffer(b'\xc3' * 64)
    return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(code))()
