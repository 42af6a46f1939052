# group: exception
# input: 1
# expect: exc:Liar
# why: the instance says that it is a MemoryError
class Liar(Exception):
    __class__ = property(lambda self: MemoryError)
def f(x): raise Liar
