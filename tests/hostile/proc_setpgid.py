# group: process
# input: 1
# expect: ok:13|violation
# why: leaves its process group
import os
def f(x):
    try: os.setpgid(0, 0)
    except OSError as e: return e.errno
