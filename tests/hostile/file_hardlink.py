# group: file
# input: 1
# expect: exc:PermissionError
# why: a hard link to the secret
import os
def f(x): return os.link('/tmp/redqueen-canary/secret.txt', '/tmp/redqueen-canary/hard')
