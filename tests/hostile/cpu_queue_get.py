# group: cpu
# input: 1
# expect: timeout
# why: waits a minute for an item that nobody puts
import queue
def f(x): return queue.Queue().get(timeout=60)
