# group: source
# input: 1
# expect: exc:SyntaxError
# why: an unfinished escape in a string
def f(x): return '\N{no such character at all}'
