# group: file
# input: 1
# expect: exc:PermissionError
# why: reads what the supervisor sends: the job of somebody else, if channels were shared
import os
def f(x): return os.read(3, 1000)
