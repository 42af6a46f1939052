# group: process
# input: 1
# expect: ok:13|violation
# why: a new session would escape a kill of the group
import os
def f(x):
    try: os.setsid()
    except OSError as e: return e.errno
