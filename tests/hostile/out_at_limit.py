# group: output
# input: 1
# expect: ok*
# why: a text of exactly 20,000 characters, quotes included
def f(x): return 'a' * 19_998
