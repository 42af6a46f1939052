# group: honest
# input: {3, 1, 2, 10}, [2, 3, 3]
# expect: ok:({1, 2, 3, 10}, {2, 3}, {1, 10})
# why: set algebra, with numbers in numeric order
def f(a, b): return (a, a & set(b), a - set(b))
