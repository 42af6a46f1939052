# group: kernel
# input: 1
# expect: violation
# why: mounts an unknown file system type
import ctypes, sys
def f(x):
    return ctypes.CDLL(None).syscall((165, 40)['aarch64' in sys.implementation._multiarch], b'none', b'/tmp/redqueen-canary', b'redqueen-none', 0, None)
