# group: forge
# input: 1
# expect: exc:ValueError|noresult
# why: the names in the harness's except clauses are rebound so that they catch nothing
import builtins
def f(x):
    error = ValueError('boo')
    for name in ('BaseException', 'Exception', 'MemoryError', 'RecursionError', 'SystemExit'):
        setattr(builtins, name, ZeroDivisionError)
    raise error
