# group: nondet
# input: 1
# expect: nondet
# why: the time of day with microseconds
import datetime
def f(x): return datetime.datetime.now().isoformat()
