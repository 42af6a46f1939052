# group: process
# input: 1
# expect: exc:PermissionError
# why: fork is refused; were it not, twenty children would end by themselves
import os
def f(x):
    for _ in range(20):
        if os.fork() == 0: os._exit(0)
    return 'forked'
