# group: signal
# input: 1
# expect: timeout
# why: blocks every signal if it can, then spins: SIGKILL cannot be blocked
import signal
def f(x):
    try: signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
    except OSError: pass
    for _ in range(2 * 10**9): pass
