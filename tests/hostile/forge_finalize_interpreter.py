# group: forge
# input: 1
# expect: crash|noresult
# why: Py_FinalizeEx under a running frame: whatever it does stays in the child
import ctypes
def f(x): return ctypes.pythonapi.Py_FinalizeEx()
