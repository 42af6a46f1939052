# group: memory
# input: 1
# expect: memory|timeout
# why: grows by realloc
def f(x):
    b = bytearray(1 << 20)
    while len(b) < 1 << 31: b += bytes(len(b))
    return len(b)
