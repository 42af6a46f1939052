# group: cpu
# input: 1
# expect: timeout
# why: nested groups with a back reference
import re
def f(x): return re.search(r'^(([a-z])+.)+\2[A-Z]$', 'a' * 80) is None
