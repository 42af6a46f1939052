# group: source
# input: 1, c=5
# expect: ok:(1, 2, 5, 9)
# why: defaults and keyword-only arguments
def f(a, b=2, *, c, d=9): return (a, b, c, d)
