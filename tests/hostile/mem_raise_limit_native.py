# group: memory
# input: 1
# expect: memory
# why: prlimit64 by number on itself
import ctypes, sys
def f(x):
    both = (ctypes.c_uint64 * 2)(2**64 - 1, 2**64 - 1)
    ctypes.CDLL(None).syscall((302, 261)['aarch64' in sys.implementation._multiarch], 0, 9, both, None)
    return len(bytearray(1 << 31))
