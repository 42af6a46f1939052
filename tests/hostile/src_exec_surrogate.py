# group: source
# input: 1
# expect: exc:UnicodeEncodeError|exc:SyntaxError
# why: generated source with a lone surrogate
def f(x): exec('y = "\ud800"')
