# group: file
# input: 1
# expect: exc:PermissionError
# why: gathering write to standard error
import os
def f(x): return os.writev(2, [b'le', b'ak'])
