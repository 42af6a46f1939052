# group: forge
# input: 1
# expect: noresult|crash
# why: finalises the interpreter from inside the call
import ctypes
def f(x): ctypes.pythonapi.Py_Exit(0)
