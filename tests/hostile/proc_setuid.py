# group: process
# input: 1
# expect: ok:13|violation
# why: plays with its user ids
import os
def f(x):
    try: os.setresuid(0, 0, 0)
    except OSError as e: return e.errno
