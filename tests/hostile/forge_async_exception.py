# group: forge
# input: 1
# expect: exc:KeyboardInterrupt|ok:1|noresult
# why: an asynchronous exception may land in the harness after f has returned
import ctypes, threading
def f(x):
    ident = ctypes.c_ulong(threading.get_ident())
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(KeyboardInterrupt))
    return 1
