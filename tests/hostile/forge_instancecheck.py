# group: forge
# input: 1
# expect: opaque
# why: ABC registration makes isinstance(value, int) true by way of the numbers tower
import numbers
class V:
    def __int__(self): return 42
    def __index__(self): return 42
    def __repr__(self): return '42'
    def __eq__(self, other): return True
numbers.Integral.register(V)
def f(x): return V()
