# group: kernel
# input: 1
# expect: ok:True
# why: the raw getpid agrees with the library
import ctypes, os, sys
def f(x): return ctypes.CDLL(None).syscall((39, 172)['aarch64' in sys.implementation._multiarch]) == os.getpid()
