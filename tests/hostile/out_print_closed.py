# group: output
# input: 1
# expect: ok:1|exc:ValueError
# why: closes standard output and returns
import sys
def f(x):
    sys.stdout.close()
    return 1
