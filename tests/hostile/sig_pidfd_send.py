# group: signal
# input: 1
# expect: exc:PermissionError|violation
# why: a signal by descriptor
import signal
def f(x): signal.pidfd_send_signal(3, 0)
