# group: kernel
# input: 1
# expect: violation
# why: changes the root
import ctypes, sys
def f(x):
    return ctypes.CDLL(None).syscall((155, 41)['aarch64' in sys.implementation._multiarch], b'/tmp/redqueen-canary/none', b'/tmp/redqueen-canary/none')
