# group: nondet
# input: 1
# expect: nondet
# why: an address inside a text
def f(x): return repr(f)
