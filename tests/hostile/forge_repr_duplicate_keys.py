# group: forge
# input: 1
# expect: badreply|noresult|ok:1
# why: a well-formed literal that is not canonical: the text and the value would differ
import builtins
def f(x):
    builtins.repr = builtins.ascii = lambda o: '{1: 2, 1: 3}'
    return 1
