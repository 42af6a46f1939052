# group: kernel
# input: 1
# expect: violation
# why: reads the kernel log
import ctypes, sys
def f(x):
    return ctypes.CDLL(None).syscall((103, 116)['aarch64' in sys.implementation._multiarch], 3, ctypes.create_string_buffer(64), 64)
