# group: memory
# input: 1
# expect: memory|timeout|exc:OverflowError
# why: a number of a gigabyte out of one call
import random
def f(x): return random.Random(1).getrandbits((1 << 31) - 1).bit_length()
