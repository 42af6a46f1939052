# group: source
# input: 1
# expect: exc:ValueError|exc:SyntaxError
# why: generated source with a NUL
def f(x): return eval('1\0+1')
