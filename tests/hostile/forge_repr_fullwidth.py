# group: forge
# input: 1
# expect: badreply|noresult|ok:1
# why: digits that int() and a Unicode-aware regex accept and canonical text does not
import builtins
def f(x):
    builtins.repr = builtins.ascii = lambda o: '\uff14\uff12'
    return 1
