# group: source
# input: 1
# expect: exc:SyntaxError
# why: a name is both parameter and global
def f(x):
    global x
    return x
