# group: source
# input: 2
# expect: ok:(1.4142135623730951, 3)
# why: a star import binds names, and f wins
from math import *
def f(x): return (sqrt(x), ceil(e))
