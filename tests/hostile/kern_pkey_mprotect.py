# group: kernel
# input: 1
# expect: violation|ok:[-1, 13]
# why: makes a page executable through the protection-key call
import ctypes, sys
def f(x):
    buffer = ctypes.create_string_buffer(8192)
    at = (ctypes.addressof(buffer) + 4095) & ~4095
    return [ctypes.CDLL(None, use_errno=True).syscall((329, 288)['aarch64' in sys.implementation._multiarch], ctypes.c_void_p(at), 4096, 7, -1), ctypes.get_errno()]
