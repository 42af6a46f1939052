# group: exception
# input: 1
# expect: exc:Loud
# why: formatting the exception or asking its attributes never returns
class Loud(Exception):
    def __str__(self):
        for _ in range(2 * 10**9): pass
    __repr__ = __reduce__ = __str__
    args = __cause__ = __context__ = __notes__ = property(__str__)
def f(x): raise Loud
