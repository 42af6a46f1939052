# group: file
# input: 1
# expect: exc:PermissionError
# why: plants a link for a later reader to follow
import os
def f(x): return os.symlink('/etc/passwd', '/tmp/redqueen-canary/link')
