# group: source
# input: 1
# expect: exc:ModuleNotFoundError
# why: a module that exists nowhere
import rq_no_such_module
def f(x): return 1
