# group: output
# input: 1
# expect: toolong|exc:OSError
# why: sys.stdout.write in place of print
import sys
def f(x):
    for _ in range(200): sys.stdout.write('x' * 1000)
    return 1
