# group: source
# input: 1
# expect: exc:IndentationError
# why: a body without indentation
def f(x):
return x
