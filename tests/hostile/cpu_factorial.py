# group: cpu
# input: 1
# expect: timeout|memory
# why: math.factorial holds the interpreter for minutes
import math
def f(x): return math.factorial(10**7) % 10007
