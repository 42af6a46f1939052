# group: forge
# input: 1
# expect: ok*|crash|noresult|badreply
# why: True and False trade digits in this process only
import ctypes
def f(x):
    at = int.__basicsize__
    ctypes.c_uint32.from_address(id(True) + at).value = 0
    return [True, 1 == 1, not 0]
