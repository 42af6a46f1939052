# group: honest
# input: b'red', 'queen'
# expect: ok:(b'redqueen', '726564', 3)
# why: bytes, encoding and hex
def f(a, b): return (a + b.encode(), a.hex(), len(a))
