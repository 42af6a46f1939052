# group: file
# input: 1
# expect: exc:PermissionError
# why: changes a date: a channel of one bit
import os
def f(x): return os.utime('/tmp/redqueen-canary/secret.txt', (0, 0))
