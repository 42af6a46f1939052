# group: source
# input: 1
# expect: exc:SyntaxError
# why: return outside a function
def f(x): return 1
return 2
