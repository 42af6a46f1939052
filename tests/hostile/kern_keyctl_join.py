# group: kernel
# input: 1
# expect: violation
# why: joins a named session keyring that other runs could join
import ctypes, sys
def f(x):
    return ctypes.CDLL(None).syscall((250, 219)['aarch64' in sys.implementation._multiarch], 1, b'rq')
