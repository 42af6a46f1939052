# group: file
# input: 1
# expect: exc:PermissionError
# why: new descriptors of any kind
import os
def f(x): return os.pipe2(os.O_CLOEXEC)
