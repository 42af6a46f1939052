# group: file
# input: 1
# expect: exc:PermissionError
# why: positioned write on the reply socket
import os
def f(x): return os.pwrite(3, b'x', 0)
