# group: forge
# input: 1
# expect: opaque
# why: the class of a live module object is swapped for one that prints as a number
import types
class M(types.ModuleType):
    def __repr__(self): return '42'
    def __eq__(self, other): return True
    __hash__ = object.__hash__
def f(x):
    m = types.ModuleType('m')
    m.__class__ = M
    return m
