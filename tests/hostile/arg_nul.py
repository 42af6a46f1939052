# group: forge
# input: @'1\x00, 2'@
# expect: exc:ValueError|exc:SyntaxError
# why: a NUL in the argument text
def f(*x): return x
