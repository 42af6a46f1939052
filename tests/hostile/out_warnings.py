# group: output
# input: 1
# expect: ok:1
# why: warnings by the hundred go nowhere
import warnings
def f(x):
    for i in range(300): warnings.warn('w%d' % i)
    return 1
