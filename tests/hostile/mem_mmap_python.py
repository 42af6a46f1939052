# group: memory
# input: 1
# expect: exc:OSError|exc:PermissionError
# why: anonymous mapping through the mmap module
import mmap
def f(x): return len(mmap.mmap(-1, 1 << 31))
