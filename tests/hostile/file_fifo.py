# group: file
# input: 1
# expect: exc:PermissionError
# why: a named pipe between runs
import os
def f(x): return os.mkfifo('/tmp/redqueen-canary/fifo')
