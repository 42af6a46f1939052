# group: file
# input: 1
# expect: exc:PermissionError|violation
# why: hides data in an extended attribute
import os
def f(x): return os.setxattr('/tmp/redqueen-canary/secret.txt', 'user.rq', b'1')
