# group: signal
# input: 1
# expect: ok:[-1, 13]|violation
# why: an alternate stack is the first step to surviving a stack overflow
import ctypes
def f(x):
    class Stack(ctypes.Structure): _fields_ = [('sp', ctypes.c_void_p), ('flags', ctypes.c_int), ('size', ctypes.c_size_t)]
    buffer = ctypes.create_string_buffer(1 << 16)
    return [ctypes.CDLL(None, use_errno=True).sigaltstack(ctypes.byref(Stack(ctypes.addressof(buffer), 0, 1 << 16)), None), ctypes.get_errno()]
