# group: cpu
# input: 1
# expect: timeout
# why: takes a lock twice: no CPU is used and only the wall clock notices
import threading
def f(x):
    lock = threading.Lock()
    lock.acquire()
    return lock.acquire(timeout=60)
