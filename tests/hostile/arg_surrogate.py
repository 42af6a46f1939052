# group: forge
# input: @'\'\udc80\''@
# expect: exc:UnicodeEncodeError|exc:SyntaxError|exc:ValueError|ok:'\udc80'
# why: a lone surrogate cannot be encoded on its way to the guest
def f(x): return x
