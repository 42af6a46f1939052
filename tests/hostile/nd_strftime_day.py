# group: nondet
# input: 1
# expect: nondet
# why: the local date, which two runs see a day apart
import time
def f(x): return time.strftime('%A')
