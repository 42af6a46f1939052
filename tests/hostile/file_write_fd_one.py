# group: file
# input: 1
# expect: exc:PermissionError
# why: standard output by number, behind sys.stdout
import os
def f(x): return os.write(1, b'leak')
