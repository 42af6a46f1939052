# group: forge
# input: 1
# expect: opaque
# why: frozenset is hashable and equal to a set, and is not in the list of plain types
def f(x): return frozenset({1, 2})
