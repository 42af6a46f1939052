# group: output
# input: 1
# expect: toolong
# why: one digit more cannot
def f(x): return 10**4300
