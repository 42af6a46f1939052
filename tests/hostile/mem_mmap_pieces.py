# group: memory
# input: 1
# expect: ok:True
# why: many small mappings, the limit counted over all of them
import mmap
def f(x):
    keep = []
    try:
        for _ in range(128): keep.append(mmap.mmap(-1, 1 << 24, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    except OSError:
        return len(keep) < 64
    return len(keep)
