# group: kernel
# input: 1
# expect: violation
# why: a POSIX message queue outlives the process
import ctypes, sys
def f(x):
    return ctypes.CDLL(None).syscall((240, 180)['aarch64' in sys.implementation._multiarch], b'redqueen-q', 0o102, 0o600, None)
