# group: signal
# input: 1
# expect: ok:[-1, 13]|violation
# why: a descriptor that swallows signals
import ctypes, sys
def f(x): return [ctypes.CDLL(None, use_errno=True).syscall((289, 74)['aarch64' in sys.implementation._multiarch], -1, (ctypes.c_uint64 * 1)(2**64 - 1), 8, 0), ctypes.get_errno()]
