# group: source
# input: 1
# expect: exc:TypeError
# why: a required keyword is missing
def f(a, *, c): return a
