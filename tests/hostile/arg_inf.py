# group: forge
# input: 1e999, -1e999
# expect: ok:[inf, -inf]
# why: overflowing float literals are infinities
def f(x, y): return [x, y]
