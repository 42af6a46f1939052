# group: file
# input: 1
# expect: exc:PermissionError
# why: empties the secret without opening it
import os
def f(x): return os.truncate('/tmp/redqueen-canary/secret.txt', 0)
