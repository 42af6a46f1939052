# group: forge
# input: x=1, x=2
# expect: exc:SyntaxError|exc:ValueError|exc:TypeError
# why: a keyword given twice is a syntax error in a real call, and ast.parse alone does not notice
def f(x): return x
