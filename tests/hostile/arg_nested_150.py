# group: forge
# input: @'[' * 150 + ']' * 150@
# expect: toolong
# why: deep enough for the parser and too deep for a result
def f(x): return x
