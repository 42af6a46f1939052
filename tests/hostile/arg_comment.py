# group: forge
# input: 1 # )
# expect: ok:1
# why: a comment cannot swallow the closing parenthesis
def f(x): return x
