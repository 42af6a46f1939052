# group: source
# input: 1
# expect: exc:SyntaxError
# why: an open bracket to the end of the file
def f(x): return (x
