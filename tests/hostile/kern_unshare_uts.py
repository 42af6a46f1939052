# group: kernel
# input: 1
# expect: violation
# why: a namespace of its own, with rights inside it
import ctypes, sys
def f(x):
    return ctypes.CDLL(None).syscall((272, 97)['aarch64' in sys.implementation._multiarch], 0x04000000)
