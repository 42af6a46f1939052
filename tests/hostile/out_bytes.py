# group: output
# input: 1
# expect: ok:b'\x00\xff\n\'"'
# why: bytes with everything awkward
def f(x): return b'\x00\xff\n\'"'
