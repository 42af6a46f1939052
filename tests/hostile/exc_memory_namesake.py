# group: exception
# input: 1
# expect: exc:MemoryError|memory
# why: a user class that shares the name
class MemoryError(Exception): pass
def f(x): raise MemoryError
