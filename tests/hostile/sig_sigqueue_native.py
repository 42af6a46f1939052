# group: signal
# input: 1
# expect: ok:[-1, 13]|violation
# why: rt_sigqueueinfo forges the sender of a signal
import ctypes, os, sys
def f(x):
    info = (ctypes.c_int * 32)(28, 0, -1)
    return [ctypes.CDLL(None, use_errno=True).syscall((129, 138)['aarch64' in sys.implementation._multiarch], os.getppid(), 28, info), ctypes.get_errno()]
