# group: source
# input: 1
# expect: exc:NameError
# why: defines f and removes it
def f(x): return 1
del f
