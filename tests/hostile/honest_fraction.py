# group: honest
# input: 10
# expect: ok:(7381, 2520)
# why: the tenth harmonic number
from fractions import Fraction
def f(n):
    total = sum((Fraction(1, k) for k in range(1, n + 1)), Fraction(0))
    return (total.numerator, total.denominator)
