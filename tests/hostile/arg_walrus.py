# group: forge
# input: (x := 5)
# expect: exc:ValueError|exc:SyntaxError
# why: an assignment expression is code, not data
def f(x): return x
