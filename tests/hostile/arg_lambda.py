# group: forge
# input: (lambda: 1)()
# expect: exc:ValueError|exc:SyntaxError
# why: a call in the argument text
def f(x): return x
