# group: output
# input: 1
# expect: ok*
# why: an integer of 4,300 digits can still be written
def f(x): return 10**4299
