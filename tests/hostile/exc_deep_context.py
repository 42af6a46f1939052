# group: exception
# input: 1
# expect: exc:KeyError
# why: a chain of 50,000 causes that nobody should walk recursively
def f(x):
    last = None
    for i in range(50000):
        e = KeyError(i)
        e.__cause__ = last
        last = e
    raise last
