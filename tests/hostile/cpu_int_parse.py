# group: cpu
# input: 1
# expect: timeout
# why: quadratic conversion in one C call once the digit limit is lifted
import sys
def f(x):
    sys.set_int_max_str_digits(0)
    return int('7' * 3_000_000) % 97
