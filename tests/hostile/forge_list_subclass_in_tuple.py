# group: forge
# input: 1
# expect: opaque
# why: a list subclass two levels down that iterates differently every time
class L(list):
    n = 0
    def __iter__(self):
        L.n += 1
        return iter([L.n])
def f(x): return ({'k': (1, L([0]))},)
