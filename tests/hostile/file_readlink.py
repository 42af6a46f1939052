# group: file
# input: 1
# expect: exc:PermissionError
# why: finds out what interpreter runs it
import os
def f(x): return os.readlink('/proc/self/exe')
