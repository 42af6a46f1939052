# group: forge
# input: 1
# expect: exc:ValueError
# why: the interpreter's last-resort hooks are not part of the protocol
import os, sys, threading
def f(x):
    sys.excepthook = sys.unraisablehook = sys.displayhook = threading.excepthook = lambda *a: os._exit(0)
    raise ValueError
