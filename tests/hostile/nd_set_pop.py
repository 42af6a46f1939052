# group: nondet
# input: 1
# expect: nondet
# why: pop takes whatever comes first
def f(x):
    s = set('abcdefghijklmnopqrstuvwxyz')
    return ''.join(s.pop() for _ in range(20))
