# group: signal
# input: 1
# expect: exc:PermissionError|violation
# why: waits for a signal that never comes
import signal
def f(x): return signal.sigtimedwait([signal.SIGUSR1], 60)
