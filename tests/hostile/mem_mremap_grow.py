# group: memory
# input: 1
# expect: ok:[True, 12]
# why: grows a mapping in place of making a new one
import ctypes
def f(x):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
    at = libc.mmap(None, ctypes.c_size_t(1 << 20), 3, 0x22, -1, ctypes.c_long(0))
    grown = libc.mremap(ctypes.c_void_p(at), ctypes.c_size_t(1 << 20), ctypes.c_size_t(1 << 31), 1)
    return [grown == ctypes.c_void_p(-1).value, ctypes.get_errno()]
