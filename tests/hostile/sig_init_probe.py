# group: signal
# input: 1
# expect: ok:13
# why: probes process 1, the init of its namespace or of the machine
import os
def f(x):
    try: os.kill(1, 0)
    except OSError as e: return e.errno
    return 'alive'
