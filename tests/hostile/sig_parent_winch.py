# group: signal
# input: 1
# expect: exc:PermissionError
# why: even a harmless signal to the parent is refused
import os, signal
def f(x): os.kill(os.getppid(), signal.SIGWINCH); return 'sent'
