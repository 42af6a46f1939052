# group: file
# input: 1
# expect: exc:PermissionError
# why: standard error by number
import os
def f(x): return os.write(2, b'leak')
