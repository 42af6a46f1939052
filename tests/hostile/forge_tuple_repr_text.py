# group: forge
# input: 1
# expect: badreply|noresult|toolong|ok:1
# why: the canonical text is replaced by 10,000 open brackets for the host to choke on
import builtins
def f(x):
    builtins.repr = builtins.ascii = builtins.str = lambda o='': '[' * 10000
    return 1
