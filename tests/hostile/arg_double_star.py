# group: forge
# input: **{'x': 1}
# expect: exc:ValueError|exc:SyntaxError
# why: keyword unpacking is not a literal argument
def f(x): return x
