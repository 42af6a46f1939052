# group: forge
# input: 1) + f(2
# expect: exc:ValueError|exc:SyntaxError
# why: turns one call into an expression of two
def f(x): return x
