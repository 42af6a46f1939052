# group: forge
# input: 1
# expect: opaque
# why: an IntEnum member equals an int and is none
import enum
class E(enum.IntEnum):
    A = 42
def f(x): return E.A
