# group: forge
# input: 1
# expect: opaque
# why: touching any attribute of the result, __class__ included, never returns
class V:
    def __getattribute__(self, name):
        for _ in range(2 * 10**9): pass
    __iter__ = __len__ = __repr__ = __eq__ = __bool__ = lambda self, *a: self.spin
    __hash__ = None
def f(x): return V()
