# group: forge
# input: @'1' + '+1' * 30000@
# expect: memory|exc:RecursionError|exc:MemoryError|exc:SyntaxError|exc:ValueError|crash
# why: a left-deep tree of additions
def f(x): return x
