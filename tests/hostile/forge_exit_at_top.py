# group: forge
# input: 1
# expect: noresult
# why: leaves with status 0 before f exists
import os
os._exit(0)
def f(x): return 42
