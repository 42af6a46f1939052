# group: output
# input: 1
# expect: ok:'\U0001f451\xe9'
# why: canonical text is ASCII
def f(x): return '\U0001f451\xe9'
