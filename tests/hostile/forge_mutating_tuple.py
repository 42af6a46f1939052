# group: forge
# input: 1
# expect: ok:(1, (2, 3))
# why: an exact tuple whose slots were filled through the C API is a plain value like any other
import ctypes
def f(x):
    t = (1, None)
    ctypes.c_void_p.from_address(id(t) + tuple.__basicsize__ + 8).value = id(KEEP)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(KEEP))
    return t
KEEP = (2, 3)
