# group: stack
# input: 1
# expect: exc:RecursionError|exc:OverflowError
# why: the pattern parser recurses per group
import re
def f(x): return re.compile('(' * 20_000 + ')' * 20_000) and 1
