# group: forge
# input: 1
# expect: noresult|badreply|ok:1
# why: replaces the harness's encoder by one that smuggles in a second line
import sys, types
def f(x):
    at = sys._getframe(1)
    while at:
        for value in list(at.f_globals.values()):
            if type(value) is types.ModuleType and callable(getattr(value, 'encode', None)): value.encode = lambda *a: '1\nok 2'
        at = at.f_back
    return 1
