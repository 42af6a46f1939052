# group: forge
# input: @'-' * 20000 + '1'@
# expect: memory|exc:RecursionError|exc:MemoryError|exc:SyntaxError|crash|exc:ValueError
# why: a sign per level: parser and tree walk recurse
def f(x): return x
