# group: nondet
# input: 1
# expect: ok:['a', 'e', 'h', 'n', 'o', 's', 't', 'y']
# why: sorting takes the order out again
def f(x): return sorted(set('thosenasty'))
