# group: forge
# input: 1
# expect: opaque
# why: the type itself hashes and compares like int, so a set lookup on type(value) is fooled and only identity is not
class M(type):
    def __eq__(cls, other): return True
    def __hash__(cls): return hash(int)
class V(metaclass=M):
    def __repr__(self): return '42'
def f(x): return V()
