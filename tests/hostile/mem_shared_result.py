# group: memory
# input: 1
# expect: toolong|timeout|memory
# why: three references per level, thirty levels
def f(x):
    d = {'v': 0}
    for _ in range(30): d = {'a': d, 'b': d, 'c': d}
    return d
