# group: nondet
# input: 1
# expect: nondet
# why: string hashes differ per seed
def f(x): return hash('red queen')
