# group: source
# input: 1
# expect: exc:TypeError
# why: f is rebound to something that cannot be called
def f(x): return 1
f = None
