# group: file
# input: 1
# expect: exc:PermissionError|violation
# why: changes directory by descriptor
import os
def f(x): return os.fchdir(3)
