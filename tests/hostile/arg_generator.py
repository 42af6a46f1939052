# group: forge
# input: x for x in [1]
# expect: exc:ValueError|exc:SyntaxError
# why: a bare generator expression is legal between call parentheses
def f(x): return list(x)
