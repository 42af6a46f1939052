# group: exception
# input: 1
# expect: exc:E
# why: the metaclass computes __name__ forever
class M(type):
    @property
    def __name__(cls):
        for _ in range(2 * 10**9): pass
class E(Exception, metaclass=M): pass
def f(x): raise E
