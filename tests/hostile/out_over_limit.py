# group: output
# input: 1
# expect: toolong
# why: one character more is refused, never cut
def f(x): return 'a' * 19_999
