# group: forge
# input: 1
# expect: toolong|badreply|exc:ValueError
# why: int.bit_length is replaced inside the type dict, so a size check in the guest lies; the host has its own
import ctypes, gc, sys
def f(x):
    gc.get_referents(int.__dict__)[0]['bit_length'] = lambda self: 1
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(int))
    sys.set_int_max_str_digits(0)
    return 10**6000
