# group: forge
# input: 1
# expect: noresult
# why: an exit code that looks like a SIGKILL is not one
import os
def f(x): os._exit(137)
