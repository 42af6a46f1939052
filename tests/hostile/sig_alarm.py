# group: signal
# input: 1
# expect: ok:0|violation
# why: an alarm whose default action would end the process
import signal
def f(x):
    signal.alarm(1)
    return 0
