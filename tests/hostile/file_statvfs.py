# group: file
# input: 1
# expect: exc:PermissionError|violation
# why: asks about the file system
import os
def f(x): return os.statvfs('/').f_blocks
