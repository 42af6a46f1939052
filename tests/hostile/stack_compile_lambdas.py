# group: stack
# input: 1
# expect: exc:RecursionError|exc:MemoryError|memory|exc:SyntaxError|crash
# why: nested scopes in the symbol table
def f(x): return eval('lambda: ' * 20_000 + '1')
