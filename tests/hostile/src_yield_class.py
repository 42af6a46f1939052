# group: source
# input: 1
# expect: exc:SyntaxError
# why: nonlocal at module level
nonlocal x
def f(x): return 1
