# group: forge
# input: 1)(2
# expect: exc:ValueError|exc:SyntaxError
# why: closes the call and starts another
def f(x): return f
