# group: nondet
# input: 1
# expect: nondet
# why: an address inside a formatted text
class A: pass
def f(x): return f'{A()!s:>60}'
