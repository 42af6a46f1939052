# group: forge
# input: 1
# expect: ok:False
# why: the C-level environment block holds no secret of the parent
import ctypes, os
def f(x):
    block = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), 'environ')
    i, found = 0, any('SECRET' in v.upper() for v in [*os.environ, *os.environ.values()])
    while block and block[i]:
        found |= b'SECRET' in block[i].upper()
        i += 1
    return found
