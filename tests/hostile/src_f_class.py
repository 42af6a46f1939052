# group: source
# input: 5
# expect: ok:25
# why: f is a class whose __new__ returns an int
class f:
    def __new__(cls, x): return x * x
