# group: honest
# input: '0.1', '0.2'
# expect: ok:'0.3000'
# why: decimal arithmetic
from decimal import Decimal, ROUND_HALF_EVEN
def f(a, b): return str((Decimal(a) + Decimal(b)).quantize(Decimal('0.0001'), rounding=ROUND_HALF_EVEN))
