# group: nondet
# input: 1
# expect: nondet
# why: the local date, which two runs see a day apart
import datetime
def f(x): return datetime.date.today().isoformat()
