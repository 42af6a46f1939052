# group: kernel
# input: 1
# expect: violation
# why: the tool of many kernel exploits
import ctypes, sys
def f(x):
    return ctypes.CDLL(None).syscall((323, 282)['aarch64' in sys.implementation._multiarch], 1)
