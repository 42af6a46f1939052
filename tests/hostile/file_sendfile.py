# group: file
# input: 1
# expect: exc:PermissionError|violation
# why: standard input into the reply socket
import os
def f(x): return os.sendfile(3, 0, None, 4096)
