# group: memory
# input: 1
# expect: memory
# why: two gigabytes of pointers in one expression
def f(x): return len([None] * (1 << 28))
