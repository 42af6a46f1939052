# group: memory
# input: 1
# expect: exc:ValueError
# why: an exception that carries 30 MB: only its name travels
def f(x): raise ValueError('x' * 30_000_000)
