# group: kernel
# input: 1
# expect: violation|ok:[-1, 13]
# why: reads the clock discipline, the door to setting the clock
import ctypes, sys
def f(x):
    return [ctypes.CDLL(None, use_errno=True).syscall((305, 266)['aarch64' in sys.implementation._multiarch], 0, ctypes.create_string_buffer(256)), ctypes.get_errno()]
