# group: source
# input: 1
# expect: exc:SyntaxError
# why: a future import after code
A = 1
from __future__ import annotations
def f(x): return 1
