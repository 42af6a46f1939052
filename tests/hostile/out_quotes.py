# group: output
# input: 1
# expect: ok:'\'"\\'
# why: quotes and a backslash
def f(x): return '\'"\\'
