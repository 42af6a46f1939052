# group: source
# input: 1
# expect: exc:ImportError
# why: a name that the module does not have
from math import no_such_name
def f(x): return 1
