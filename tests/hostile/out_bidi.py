# group: output
# input: 1
# expect: ok:'\u202eevil\u2066'
# why: direction overrides stay escaped
def f(x): return '\u202eevil\u2066'
