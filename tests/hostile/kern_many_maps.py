# group: kernel
# input: 1
# expect: ok:True|memory|timeout|exc:OSError
# why: thousands of mappings of one page: kernel memory that no limit on size counts
import mmap
def f(x):
    keep = []
    try:
        for _ in range(5000): keep.append(mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    except OSError: pass
    return len(keep) <= 5000
