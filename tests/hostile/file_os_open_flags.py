# group: file
# input: 1
# expect: exc:PermissionError
# why: creates a file with os.open
import os
def f(x): return os.open('/tmp/redqueen-canary/new', os.O_CREAT | os.O_RDWR | os.O_EXCL, 0o600)
