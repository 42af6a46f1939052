# group: process
# input: 1
# expect: exc:PermissionError|violation
# why: a descriptor for the parent process
import os
def f(x): return os.pidfd_open(os.getppid()) >= 0
