# group: memory
# input: 1
# expect: memory|timeout
# why: a dict of distinct strings
def f(x):
    d = {}
    for i in range(10_000_000): d['key' * 8 + hex(i)] = i
    return len(d)
