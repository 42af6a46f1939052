# group: honest
# input: n=5, word='ab', flags=[True, None]
# expect: ok:('ababababab', [True, None])
# why: keyword arguments
def f(word, n, flags=()): return (word * n, flags)
