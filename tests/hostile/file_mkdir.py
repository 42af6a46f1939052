# group: file
# input: 1
# expect: exc:PermissionError
# why: makes a directory
import os
def f(x): return os.makedirs('/tmp/redqueen-canary/a/b')
