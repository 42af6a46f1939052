# group: nondet
# input: 1
# expect: nondet
# why: so do hashes of bytes
def f(x): return hash(b'red queen') % 1000003
