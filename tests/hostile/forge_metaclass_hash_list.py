# group: forge
# input: 1
# expect: opaque
# why: the same lie aimed at the container branch: a type that passes for list and iterates over forged items
class M(type):
    def __eq__(cls, other): return other is list or other is cls
    def __hash__(cls): return hash(list)
class V(metaclass=M):
    def __iter__(self): return iter([4, 2])
    def __len__(self): return 2
def f(x): return V()
