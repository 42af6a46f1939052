# group: stack
# input: 1
# expect: exc:RecursionError
# why: two lists that contain each other are compared
def f(x):
    a, b = [], []
    a.append(b); b.append(a)
    return a == b
