# group: kernel
# input: 1
# expect: violation|ok:[-1, 13]
# why: writes code first and asks for execute later
import ctypes, sys
def f(x):
    buffer = ctypes.create_string_buffer(8192)
    at = (ctypes.addressof(buffer) + 4095) & ~4095
    return [ctypes.CDLL(None, use_errno=True).syscall((10, 226)['aarch64' in sys.implementation._multiarch], ctypes.c_void_p(at), 4096, 5), ctypes.get_errno()]
