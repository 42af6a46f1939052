# group: cpu
# input: 1
# expect: timeout
# why: the way back, quadratic as well
import sys
def f(x):
    sys.set_int_max_str_digits(0)
    return len(str(1 << 9_000_000))
