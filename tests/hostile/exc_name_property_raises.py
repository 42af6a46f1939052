# group: exception
# input: 1
# expect: exc:E
# why: the metaclass raises when asked for __name__
class M(type):
    @property
    def __name__(cls): raise SystemExit
class E(Exception, metaclass=M): pass
def f(x): raise E
