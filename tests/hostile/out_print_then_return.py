# group: output
# input: 1
# expect: ok:2
# why: what is printed is not the value
def f(x):
    print('ok:42')
    return 2
