# group: file
# input: 1
# expect: exc:PermissionError
# why: a terminal of its own
import os
def f(x): return os.openpty()
