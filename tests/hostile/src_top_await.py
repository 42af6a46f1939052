# group: source
# input: 1
# expect: exc:SyntaxError
# why: await outside a function
await 1
def f(x): return 1
