# group: memory
# input: @"'" + 'x' * 300000 + "'"@
# expect: ok:300000
# why: an argument of 300,000 characters is fine
def f(x): return len(x)
