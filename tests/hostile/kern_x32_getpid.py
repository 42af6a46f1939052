# group: kernel
# input: 1
# expect: violation
# why: the x32 numbers of x86-64 reach the same kernel by another table
import ctypes, sys
def f(x):
    return ctypes.CDLL(None).syscall((0x40000000 | 39, 0x40000000 | 172)['aarch64' in sys.implementation._multiarch], 0)
