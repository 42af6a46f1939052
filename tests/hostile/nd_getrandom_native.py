# group: nondet
# input: 1
# expect: nondet|ok:[-1, 13]|violation
# why: entropy by number
import ctypes, sys
def f(x):
    buffer = ctypes.create_string_buffer(16)
    n = ctypes.CDLL(None, use_errno=True).syscall((318, 278)['aarch64' in sys.implementation._multiarch], buffer, 16, 0)
    return [n, ctypes.get_errno(), buffer.raw][:2 if n < 0 else 3]
