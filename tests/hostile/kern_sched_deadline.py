# group: kernel
# input: 1
# expect: violation|ok:[-1, 13]
# why: a real-time class would starve the machine
import ctypes, sys
def f(x):
    return [ctypes.CDLL(None, use_errno=True).syscall((314, 274)['aarch64' in sys.implementation._multiarch], 0, ctypes.create_string_buffer(64), 0), ctypes.get_errno()]
