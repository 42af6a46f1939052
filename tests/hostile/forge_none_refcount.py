# group: forge
# input: 1
# expect: crash|ok*|noresult
# why: None is released until the interpreter gives up (immortal since 3.12): contained
import ctypes
def f(x):
    ctypes.c_uint32.from_address(id(None)).value = 1
    for _ in range(50): ctypes.pythonapi.Py_DecRef(ctypes.py_object(None))
    return None
