# group: source
# input: 1
# expect: exc:SyntaxError
# why: an invisible character in a name
def f(x): return x​
