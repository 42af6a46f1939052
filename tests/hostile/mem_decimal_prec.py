# group: memory
# input: 1
# expect: memory
# why: a billion digits asked of libmpdec
import decimal
def f(x):
    decimal.getcontext().prec = 10**9
    return str(decimal.Decimal(1) / 3)[:5]
