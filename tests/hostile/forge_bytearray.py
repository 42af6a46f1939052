# group: forge
# input: 1
# expect: opaque
# why: a mutable buffer equal to bytes
def f(x): return bytearray(b'42')
