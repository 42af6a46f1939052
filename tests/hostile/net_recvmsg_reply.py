# group: net
# input: 1
# expect: ok:[-1, 13]|violation
# why: receives descriptors from whoever holds the other end
import ctypes, sys
def f(x):
    buffer = ctypes.create_string_buffer(256)
    return [ctypes.CDLL(None, use_errno=True).syscall((45, 207)['aarch64' in sys.implementation._multiarch], 3, buffer, 256, 0x40, None, None), ctypes.get_errno()]
