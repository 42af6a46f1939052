# group: memory
# input: 1
# expect: memory
# why: the same through format()
def f(x): return len(f'{x:>{2 * 10**9}}')
