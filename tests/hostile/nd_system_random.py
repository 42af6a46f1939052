# group: nondet
# input: 1
# expect: nondet|exc:PermissionError
# why: entropy from the kernel
import random
def f(x): return random.SystemRandom().getrandbits(64)
