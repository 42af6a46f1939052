# group: forge
# input: 1
# expect: ok:False
# why: neither sys.argv nor orig_argv names the parent's files or secrets
import sys
def f(x): return any('SECRET' in a.upper() or 'canary' in a for a in [*sys.argv, *sys.orig_argv, *sys.path])
