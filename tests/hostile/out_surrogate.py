# group: output
# input: 1
# expect: ok:'\ud800'
# why: a lone surrogate has a text and no encoding
def f(x): return '\ud800'
