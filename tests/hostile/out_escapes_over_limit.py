# group: output
# input: 1
# expect: toolong
# why: short as a string, too long once escaped
def f(x): return '\x00' * 6000
