# group: source
# input: 1
# expect: ok:True
# why: module attributes that programs look at
def f(x): return isinstance(__name__, str) and callable(globals()['f'])
