# group: forge
# input: 1
# expect: badreply|noresult|ok:1
# why: a host that evals replies would make a directory
import builtins
def f(x):
    builtins.repr = builtins.ascii = lambda o: "__import__('os').mkdir('/tmp/redqueen-canary/evaled')"
    return 1
