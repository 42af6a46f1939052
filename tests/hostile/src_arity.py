# group: source
# input: 1, 2
# expect: exc:TypeError
# why: too many arguments
def f(a): return a
