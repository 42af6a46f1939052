# group: file
# input: 1
# expect: ok:[-1, 13]|violation
# why: scattered read on the reply socket, by number
import ctypes, sys
def f(x):
    buffer = ctypes.create_string_buffer(64)
    vector = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 64)
    return [ctypes.CDLL(None, use_errno=True).syscall((19, 65)['aarch64' in sys.implementation._multiarch], 3, vector, 1), ctypes.get_errno()]
