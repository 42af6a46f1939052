# group: process
# input: 1
# expect: exc:PermissionError
# why: posix_spawn through the search path, with file actions
import os
def f(x): return os.posix_spawnp('touch', ['touch', '/tmp/redqueen-canary/spawned'], {}, file_actions=[(os.POSIX_SPAWN_DUP2, 3, 1)])
