# group: signal
# input: 1
# expect: exc:PermissionError
# why: the same through raise()
import signal
def f(x): signal.raise_signal(signal.SIGTSTP); return 'resumed'
