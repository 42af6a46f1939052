# group: nondet
# input: 3
# expect: ok:[3, 4, 5]
# why: state inside one run is deterministic
def g(n):
    while True:
        n += 1
        yield n - 1
IT = g(3)
def f(x): return [next(IT) for _ in range(x)]
