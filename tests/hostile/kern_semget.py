# group: kernel
# input: 1
# expect: violation
# why: a System V semaphore outlives the process
import ctypes, sys
def f(x):
    return ctypes.CDLL(None).syscall((64, 190)['aarch64' in sys.implementation._multiarch], 0x5251, 1, 0o1600)
