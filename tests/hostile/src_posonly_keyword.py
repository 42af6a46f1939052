# group: source
# input: a=1
# expect: exc:TypeError
# why: a positional-only argument given by name
def f(a, /): return a
