# group: file
# input: 1
# expect: exc:PermissionError
# why: removes the canary folder
import shutil
def f(x): return shutil.rmtree('/tmp/redqueen-canary')
