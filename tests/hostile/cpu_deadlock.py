# group: cpu
# input: 1
# expect: timeout
# why: takes a lock twice: no CPU is used and no limit runs out
import threading
def f(x):
    lock = threading.Lock()
    lock.acquire()
    return lock.acquire(timeout=60)
