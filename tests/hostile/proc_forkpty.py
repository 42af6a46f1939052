# group: process
# input: 1
# expect: exc:PermissionError|exc:OSError
# why: fork by way of a new terminal
import pty, os
def f(x):
    pid, fd = pty.fork()
    if pid == 0: os._exit(0)
    return 'forked'
