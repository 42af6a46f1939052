# group: forge
# input: 1
# expect: opaque
# why: a named tuple is a tuple subclass with a repr of its own, not a plain tuple
from collections import namedtuple
P = namedtuple('P', 'x y')
def f(x): return P(1, 2)
