# group: output
# input: 1
# expect: ok:1|toolong|exc:OSError
# why: standard error is dropped or limited, never passed on
import sys
def f(x):
    for _ in range(2000): print('x' * 1000, file=sys.stderr)
    return 1
