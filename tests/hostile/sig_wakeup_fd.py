# group: signal
# input: 1
# expect: exc:PermissionError|violation
# why: the interpreter would write signal numbers to the reply socket
import signal
def f(x): return signal.set_wakeup_fd(3)
