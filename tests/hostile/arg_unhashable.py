# group: forge
# input: {[]: 1}
# expect: exc:TypeError|exc:ValueError
# why: a literal that cannot be built
def f(x): return x
