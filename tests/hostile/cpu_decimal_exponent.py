# group: cpu
# input: 1
# expect: timeout|memory
# why: a short decimal turned into a long integer
from decimal import Decimal
def f(x): return int(Decimal('1e200000000')) % 7
