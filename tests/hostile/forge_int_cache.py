# group: forge
# input: 1
# expect: ok:78|ok:77
# why: the interpreter's shared 77 becomes 78 through a raw pointer: it may lie about its own value, the next run must be honest
import ctypes
def f(x):
    ctypes.c_uint32.from_address(id(77) + int.__basicsize__).value = 78
    return 77
