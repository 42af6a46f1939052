# group: process
# input: 1
# expect: exc:PermissionError
# why: one worker process
import multiprocessing
def f(x):
    p = multiprocessing.Process(target=print)
    p.start(); p.join(5)
    return p.exitcode
