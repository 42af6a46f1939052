# group: signal
# input: 1
# expect: exc:PermissionError
# why: installs a handler for the signal of a CPU limit
import signal
def f(x): signal.signal(signal.SIGXCPU, lambda *a: None); return 'installed'
