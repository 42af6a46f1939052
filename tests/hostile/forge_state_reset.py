# group: forge
# input: 1
# expect: ok:1
# why: global state (recursion limit, hash of types, decimal context, random state, locale of warnings) dies with the process
import builtins, decimal, gc, random, sys
def f(x):
    sys.setrecursionlimit(10**6); gc.disable(); random.seed(0); decimal.getcontext().prec = 1
    builtins.sum = builtins.sorted = builtins.max = lambda *a, **k: 'poison'
    sys.set_int_max_str_digits(0)
    return 1
