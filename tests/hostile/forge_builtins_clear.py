# group: forge
# input: 1
# expect: ok:1|noresult|exc:NameError
# why: no builtins are left for the harness to look up
import builtins
def f(x):
    builtins.__dict__.clear()
    return 1
