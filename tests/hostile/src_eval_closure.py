# group: source
# input: 4
# expect: ok:[0, 4, 8]
# why: exec with a namespace of its own is ordinary Python
def f(x):
    ns = {'k': x}
    exec('def g(n): return [k * i for i in range(n)]', ns)
    return ns['g'](3)
