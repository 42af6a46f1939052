# group: output
# input: 1
# expect: ok:[[], (), {}, set(), '', b'', 0, 0.0, None]
# why: every empty value keeps its type
def f(x): return [[], (), {}, set(), '', b'', 0, 0.0, None]
