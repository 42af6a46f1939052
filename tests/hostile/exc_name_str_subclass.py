# group: exception
# input: 1
# expect: exc:E
# why: the name is a str subclass that claims to be an identifier
class S(str):
    def isidentifier(self): return True
    def isascii(self): return True
class M(type):
    __name__ = property(lambda cls: S('ok:42\n'))
class E(Exception, metaclass=M): pass
def f(x): raise E
