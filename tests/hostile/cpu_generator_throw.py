# group: cpu
# input: 1
# expect: timeout
# why: a generator that answers every throw with another yield
def g():
    while True:
        try: yield
        except BaseException: pass
def f(x):
    it = g(); next(it)
    for _ in range(10**9): it.throw(ValueError())
