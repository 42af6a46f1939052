# group: signal
# input: 1
# expect: exc:PermissionError
# why: a signal to its own thread
import signal, threading
def f(x): signal.pthread_kill(threading.get_ident(), signal.SIGKILL)
