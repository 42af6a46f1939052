# group: nondet
# input: 1
# expect: ok:{('a', 1), ('b', 2), ('c', 3)}
# why: a set of tuples as a value has one text
def f(x): return {('b', 2), ('c', 3), ('a', 1)}
