# group: process
# input: 1
# expect: exc:PermissionError
# why: the spawn family forks in Python
import os
def f(x): return os.spawnv(os.P_WAIT, '/bin/true', ['true'])
