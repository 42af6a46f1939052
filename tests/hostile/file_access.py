# group: file
# input: 1
# expect: ok:[]
# why: existence is not to be learnt by access() either
import os
def f(x): return [p for p in ('/', '/tmp', '/proc', '/tmp/redqueen-canary') if os.access(p, os.F_OK) or os.path.isdir(p) or os.path.islink(p)]
