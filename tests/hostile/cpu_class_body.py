# group: cpu
# input: 1
# expect: timeout
# why: metaclass __prepare__ and __init_subclass__ run at import
class B:
    def __init_subclass__(cls):
        for _ in range(2 * 10**9): pass
class D(B): pass
def f(x): return 1
