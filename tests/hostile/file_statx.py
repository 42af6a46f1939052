# group: file
# input: 1
# expect: ok:[-1, 13]|violation
# why: a stat that is not among the old names
import ctypes, sys
def f(x): return [ctypes.CDLL(None, use_errno=True).syscall((332, 291)['aarch64' in sys.implementation._multiarch], -100, b'/etc/passwd', 0, 0x7ff, ctypes.create_string_buffer(256)), ctypes.get_errno()]
