# group: exception
# input: 1
# expect: exc:badname
# why: the name becomes hostile after the class was made
class E(Exception): pass
def f(x):
    E.__name__ = E.__qualname__ = 'ok:42\n'
    raise E
