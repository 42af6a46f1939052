# group: process
# input: 1
# expect: exc:RuntimeError
# why: a daemon thread would outlive the call
import threading, time
def f(x):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    return 1
