# group: kernel
# input: 1
# expect: violation
# why: loads a kernel module of no bytes
import ctypes, sys
def f(x):
    return ctypes.CDLL(None).syscall((175, 105)['aarch64' in sys.implementation._multiarch], None, 0, b'')
