# group: memory
# input: 1
# expect: violation|ok:[-1, 13]
# why: locking pages in memory is not needed
import ctypes, sys
def f(x): return [ctypes.CDLL(None, use_errno=True).syscall((151, 230)['aarch64' in sys.implementation._multiarch], 1), ctypes.get_errno()]
