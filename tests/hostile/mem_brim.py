# group: memory
# input: 1
# expect: ok:1|memory|noresult
# why: fills its memory to the brim, keeps it, and returns: the reply needs memory too
KEEP = []
def f(x):
    for size in (1 << 24, 1 << 20, 1 << 16, 1 << 12, 256):
        try:
            while len(KEEP) < 10**6: KEEP.append(bytes(size))
        except MemoryError: pass
    return 1
