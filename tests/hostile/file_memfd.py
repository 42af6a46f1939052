# group: file
# input: 1
# expect: violation|exc:PermissionError
# why: a file without a name that could be executed
import os
def f(x): return os.memfd_create('x')
