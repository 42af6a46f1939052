# group: kernel
# input: 1
# expect: violation
# why: System V shared memory outlives the process
import ctypes, sys
def f(x):
    return ctypes.CDLL(None).syscall((29, 194)['aarch64' in sys.implementation._multiarch], 0x5251, 4096, 0o1600)
