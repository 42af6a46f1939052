# group: forge
# input: 1
# expect: badreply|noresult|toolong
# why: repr returns a str subclass with lying len, encode and join: own reply only
import builtins
class S(str):
    def __len__(self): return 1
    def __add__(self, other): return S('9')
    def encode(self, *a): return b'\xff' * 100
    def isascii(self): return True
def f(x):
    builtins.repr = builtins.ascii = lambda o: S('9' * 9999)
    return [1]
