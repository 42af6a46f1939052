# group: file
# input: 1
# expect: exc:PermissionError
# why: copies the secret out
import shutil
def f(x): return shutil.copyfile('/tmp/redqueen-canary/secret.txt', '/tmp/redqueen-canary/copy.txt')
