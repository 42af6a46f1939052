# group: signal
# input: 1
# expect: exc:PermissionError
# why: a stopped process uses no CPU and never ends
import os, signal
def f(x): os.kill(os.getpid(), signal.SIGSTOP); return 'resumed'
