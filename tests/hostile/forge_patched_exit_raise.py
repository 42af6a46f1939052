# group: forge
# input: 1
# expect: noresult|violation|crash|ok:1
# why: an exception out of the exit unwinds through the frames of the zygote
import os
def leave(status): raise KeyboardInterrupt
def f(x):
    os._exit = leave
    return 1
