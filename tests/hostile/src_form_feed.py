# group: source
# input: 1
# expect: ok:1
# why: a form feed between definitions
A = 1

def f(x):
    return A
