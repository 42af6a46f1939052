# group: process
# input: 1
# expect: exc:PermissionError
# why: a shell through os.popen
import os
def f(x): return os.popen('echo out; : > /tmp/redqueen-canary/popen').read()
