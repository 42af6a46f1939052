# group: forge
# input: 1
# expect: noresult
# why: an exit code that looks like a SIGSYS is not a violation
import os
def f(x): os._exit(128 + 31)
