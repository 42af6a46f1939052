# group: forge
# input: float('nan')
# expect: exc:ValueError|exc:SyntaxError
# why: the only call that a literal may contain is set()
def f(x): return x
