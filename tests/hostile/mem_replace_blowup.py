# group: memory
# input: 1
# expect: memory
# why: each replace multiplies
def f(x):
    s = 'a' * 1000
    for _ in range(2): s = s.replace('a', 'a' * 1000)
    return len(s)
