# group: file
# input: 1
# expect: exc:PermissionError
# why: changes a mode
import os
def f(x): return os.chmod('/tmp/redqueen-canary/secret.txt', 0o777)
