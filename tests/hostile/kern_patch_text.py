# group: kernel
# input: 1
# expect: ok:[-1, 13]|violation
# why: makes libc's own code writable to put a system call of its choice there
import ctypes
def f(x):
    libc = ctypes.CDLL(None, use_errno=True)
    page = ctypes.cast(libc.getpid, ctypes.c_void_p).value & ~0xffff
    return [libc.mprotect(ctypes.c_void_p(page), 0x10000, 7), ctypes.get_errno()]
