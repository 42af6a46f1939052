# group: kernel
# input: 1
# expect: violation
# why: a System V message queue outlives the process
import ctypes, sys
def f(x):
    return ctypes.CDLL(None).syscall((68, 186)['aarch64' in sys.implementation._multiarch], 0x5251, 0o1600)
