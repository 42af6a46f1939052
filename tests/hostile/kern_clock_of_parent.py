# group: kernel
# input: 1
# expect: exc:PermissionError
# why: another process's CPU clock tells what it is doing
import os, time
def f(x): return time.clock_gettime(~os.getppid() << 3 | 2) > 0
