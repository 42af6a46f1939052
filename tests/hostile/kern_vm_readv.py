# group: kernel
# input: 1
# expect: violation
# why: reads the parent's memory
import ctypes, sys
def f(x):
    import os
    buffer = ctypes.create_string_buffer(64)
    vector = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 64)
    remote = (ctypes.c_void_p * 2)(id(buffer), 64)
    return ctypes.CDLL(None).syscall((310, 270)['aarch64' in sys.implementation._multiarch], os.getppid(), vector, 1, remote, 1, 0)
