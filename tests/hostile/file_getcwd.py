# group: file
# input: 1
# expect: exc:PermissionError
# why: learns where the supervisor was started
import os
def f(x): return os.getcwd()
