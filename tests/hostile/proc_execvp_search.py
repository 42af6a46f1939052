# group: process
# input: 1
# expect: exc:PermissionError
# why: exec along the search path with a new environment
import os
def f(x): os.execvpe('true', ['true'], {'PATH': '/bin:/usr/bin'})
