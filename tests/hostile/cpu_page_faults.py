# group: cpu
# input: 1
# expect: timeout
# why: a loop of page faults: the time is the kernel's, the limit is the process's
import mmap
def f(x):
    m = mmap.mmap(-1, 1 << 25, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for _ in range(10**6):
        m[::4096] = b'x' * (1 << 13)
        m.madvise(mmap.MADV_DONTNEED)
