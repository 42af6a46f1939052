# group: honest
# input: 500
# expect: ok:125250
# why: five hundred levels of recursion
def f(n): return 0 if n == 0 else n + f(n - 1)
