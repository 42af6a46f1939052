# group: file
# input: 1
# expect: exc:PermissionError
# why: a second name for the reply socket
import os
def f(x): return os.dup(3)
