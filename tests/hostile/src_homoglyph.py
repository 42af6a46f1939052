# group: source
# input: 1
# expect: exc:NameError
# why: a Cyrillic letter that looks like the argument
def f(x): return х
