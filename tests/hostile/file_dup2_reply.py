# group: file
# input: 1
# expect: exc:PermissionError
# why: the reply socket as standard output
import os
def f(x): return os.dup2(3, 1)
