# group: kernel
# input: 1
# expect: violation
# why: with READ_IMPLIES_EXEC every readable page becomes executable
import ctypes, sys
def f(x):
    return ctypes.CDLL(None).syscall((135, 92)['aarch64' in sys.implementation._multiarch], 0x0400000)
