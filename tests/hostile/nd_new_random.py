# group: nondet
# input: 1
# expect: nondet|exc:PermissionError
# why: a generator seeded from the system or the clock
import random
def f(x): return random.Random().getrandbits(64)
