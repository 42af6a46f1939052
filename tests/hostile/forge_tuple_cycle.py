# group: forge
# input: 1
# expect: toolong
# why: a tuple made to contain itself through the C API: impossible in Python, so recursion guards may forget it
import ctypes
def f(x):
    t = (1, None)
    ctypes.c_void_p.from_address(id(t) + tuple.__basicsize__ + 8).value = id(t)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(t))
    return t
