# group: forge
# input: 1
# expect: opaque
# why: singletons other than None and the booleans are not plain values
def f(x): return [..., NotImplemented]
