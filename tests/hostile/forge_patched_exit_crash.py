# group: forge
# input: 1
# expect: crash|ok:1
# why: if the harness leaves through os._exit the crash comes after the reply, and the exit status wins
import ctypes, os
def f(x):
    os._exit = lambda status: ctypes.string_at(16)
    return 1
