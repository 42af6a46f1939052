# group: stack
# input: 1
# expect: exc:RecursionError
# why: a property that asks for itself
class A:
    @property
    def v(self): return self.v
def f(x): return A().v
