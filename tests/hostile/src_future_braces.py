# group: source
# input: 1
# expect: exc:SyntaxError
# why: not a chance
from __future__ import braces
def f(x): return 1
