# group: forge
# input: *[1, 2]
# expect: exc:ValueError|exc:SyntaxError
# why: unpacking is not a literal argument
def f(*x): return x
