# group: source
# input: 1
# expect: ok:1
# why: the last line has no end
def f(x): return x