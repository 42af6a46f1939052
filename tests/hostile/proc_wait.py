# group: process
# input: 1
# expect: exc:PermissionError|violation
# why: reaping what is not its own
import os
def f(x): return os.waitpid(-1, os.WNOHANG)
