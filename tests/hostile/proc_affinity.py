# group: process
# input: 1
# expect: exc:PermissionError|violation
# why: pins itself to one core, or unpins
import os
def f(x): return os.sched_setaffinity(0, range(64))
