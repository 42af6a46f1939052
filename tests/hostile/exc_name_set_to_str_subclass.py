# group: exception
# input: 1
# expect: exc:badname
# why: the class's own name is a str subclass whose methods run for ever in whoever looks at it
class S(str):
    def isidentifier(self):
        while True: pass
    isascii = isidentifier
class E(Exception): pass
def f(x):
    E.__name__ = S('E')
    raise E
