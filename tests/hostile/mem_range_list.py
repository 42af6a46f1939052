# group: memory
# input: 1
# expect: memory|timeout
# why: a list of fifty million numbers
def f(x): return len(list(range(50_000_000)))
