# group: forge
# input: 'abca'
# expect: opaque
# why: Counter is a dict subclass: plain only after dict()
from collections import Counter
def f(x): return Counter(x)
