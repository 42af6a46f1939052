# group: file
# input: 1
# expect: violation|ok:[-1, 13]
# why: moves data between descriptors inside the kernel
import ctypes, sys
def f(x): return [ctypes.CDLL(None, use_errno=True).syscall((275, 76)['aarch64' in sys.implementation._multiarch], 0, None, 3, None, 4096, 0), ctypes.get_errno()]
