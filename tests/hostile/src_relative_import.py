# group: source
# input: 1
# expect: exc:ImportError
# why: there is no package around the program
from . import x
def f(x): return 1
