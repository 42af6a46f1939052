# group: forge
# input: 1
# expect: noresult
# why: the raw exit_group call skips every Python-level guard
import ctypes, sys
def f(x): return ctypes.CDLL(None).syscall((231, 94)['aarch64' in sys.implementation._multiarch], 0)
