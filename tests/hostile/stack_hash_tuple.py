# group: stack
# input: 1
# expect: crash|exc:RecursionError|memory
# why: hashing a tuple nested a quarter of a million deep recurses in C
def f(x):
    t = ()
    for _ in range(250_000): t = (t,)
    return {t: 1}[t]
