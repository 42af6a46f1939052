# group: kernel
# input: 1
# expect: violation
# why: joins the namespace of a descriptor
import ctypes, sys
def f(x):
    return ctypes.CDLL(None).syscall((308, 268)['aarch64' in sys.implementation._multiarch], 3, 0)
