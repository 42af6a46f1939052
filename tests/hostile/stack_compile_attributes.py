# group: stack
# input: 1
# expect: exc:RecursionError|exc:MemoryError|memory|exc:SyntaxError|crash
# why: a chain of 100,000 attributes is a tree as deep
def f(x): return compile('x' + '.a' * 100_000, 's', 'eval') and 1
