# group: net
# input: 1
# expect: ok:[-1, 13]|violation
# why: the same by number, with a hand-made message
import ctypes, struct, sys
def f(x):
    body = ctypes.create_string_buffer(b'x')
    vector = (ctypes.c_void_p * 2)(ctypes.addressof(body), 1)
    control = ctypes.create_string_buffer(struct.pack('Qiii4x', 20, 1, 1, 3))
    message = (ctypes.c_uint64 * 7)(0, 0, ctypes.addressof(vector), 1, ctypes.addressof(control), 24, 0)
    return [ctypes.CDLL(None, use_errno=True).syscall((46, 211)['aarch64' in sys.implementation._multiarch], 3, message, 0), ctypes.get_errno()]
