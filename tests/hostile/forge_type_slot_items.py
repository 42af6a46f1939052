# group: forge
# input: 1
# expect: ok:{1: 2}|ok:{}|badreply|noresult
# why: dict.items is replaced inside the type dict to send a key twice: rejected, or its own value at most
import ctypes, gc
def f(x):
    gc.get_referents(dict.__dict__)[0]['items'] = lambda self: [(1, 2), (1, 3)]
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(dict))
    return {1: 2}
