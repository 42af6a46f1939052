# group: kernel
# input: 1
# expect: exc:PermissionError|violation
# why: read and execute through the mmap module
import mmap
def f(x): return len(mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_EXEC))
