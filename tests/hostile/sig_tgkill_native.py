# group: signal
# input: 1
# expect: ok:[-1, 13]|violation
# why: tgkill by number
import ctypes, os, sys
def f(x): return [ctypes.CDLL(None, use_errno=True).syscall((234, 131)['aarch64' in sys.implementation._multiarch], os.getpid(), os.getpid(), 28), ctypes.get_errno()]
