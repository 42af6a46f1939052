# group: cpu
# input: 1
# expect: timeout|memory
# why: a short text that means a number of a hundred million digits
from fractions import Fraction
def f(x): return Fraction('1e100000000').denominator
