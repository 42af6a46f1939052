# group: source
# input: 3
# expect: ok:3
# why: the usual future import is first after the comments
from __future__ import annotations
def f(x: NoSuchType) -> AlsoNone: return x
