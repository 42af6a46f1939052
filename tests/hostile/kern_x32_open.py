# group: kernel
# input: 1
# expect: violation
# why: a file by x32 number, which a table of plain numbers would miss
import ctypes, sys
def f(x):
    return ctypes.CDLL(None).syscall((0x40000000 | 2, 0x40000000 | 56)['aarch64' in sys.implementation._multiarch], b'/etc/passwd', 0, 0)
