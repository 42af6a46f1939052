# group: file
# input: 1
# expect: exc:PermissionError
# why: moves the secret
import os
def f(x): return os.replace('/tmp/redqueen-canary/secret.txt', '/tmp/redqueen-canary/moved.txt')
