# group: stack
# input: 1
# expect: crash
# why: the interpreter aborts itself
import ctypes
def f(x): ctypes.pythonapi.Py_FatalError(b'stop')
