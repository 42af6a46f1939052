# group: forge
# input: 1
# expect: timeout|noresult
# why: a few bytes and then a deadlock on a futex: the deadline is the host's
import os, threading
def f(x):
    os.write(3, b'\x00\x00')
    lock = threading.Lock()
    lock.acquire()
    return lock.acquire(timeout=60)
