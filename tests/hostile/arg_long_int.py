# group: forge
# input: @'9' * 5000@
# expect: exc:SyntaxError|exc:ValueError
# why: an integer literal over the conversion limit
def f(x): return x
