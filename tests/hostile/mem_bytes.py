# group: memory
# input: 1
# expect: memory
# why: one calloc that the kernel would grant lazily
def f(x): return len(bytes(1 << 31))
