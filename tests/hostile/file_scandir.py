# group: file
# input: 1
# expect: exc:PermissionError
# why: lists open descriptors
import os
def f(x): return sorted(e.name for e in os.scandir('/proc/self/fd'))
