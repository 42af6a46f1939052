# group: forge
# input: 1
# expect: opaque
# why: a dict subclass whose items() differ from what it stores
class D(dict):
    def items(self): return [('answer', 42)]
    def __eq__(self, other): return True
    __hash__ = None
def f(x): return D(answer=0)
