# group: kernel
# input: 1
# expect: ok:[[-1, 13], [-1, 13], [-1, 13], [-1, 13]]
# why: another process's CPU clock past the C library, with and without the high half of the register
import ctypes, os, sys
def f(x):
    lib = ctypes.CDLL(None, use_errno=True)
    clock = (~os.getppid() << 3 | 2) & 0xFFFFFFFF
    calls = ((228, 229), (113, 114))['aarch64' in sys.implementation._multiarch]
    spec = (ctypes.c_long * 2)()
    return [
        [lib.syscall(call, ctypes.c_ulong(high | clock), spec), ctypes.get_errno()]
        for call in calls for high in (0, 0xFFFFFFFF00000000)
    ]
