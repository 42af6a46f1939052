# group: stack
# input: 1
# expect: ok:'freed'
# why: releasing a deep tuple must not recurse
def f(x):
    t = ()
    for _ in range(200_000): t = (t,)
    del t
    return 'freed'
