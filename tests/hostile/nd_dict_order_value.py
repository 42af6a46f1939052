# group: nondet
# input: 1
# expect: nondet|ok*
# why: equal dicts in another order: equal values, or a different text
def f(x): return {c: ord(c) for c in set('abcdefghij')}
