# group: output
# input: 1
# expect: toolong
# why: lifting the interpreter's digit limit does not lift the verifier's
import sys
def f(x):
    sys.set_int_max_str_digits(0)
    return 7**5200
