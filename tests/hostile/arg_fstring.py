# group: forge
# input: f'{().__class__}'
# expect: exc:ValueError|exc:SyntaxError
# why: an f-string evaluates what is inside it
def f(x): return x
