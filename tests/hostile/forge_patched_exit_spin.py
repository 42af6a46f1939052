# group: forge
# input: 1
# expect: timeout|ok:1
# why: never leaves after its reply
import os, posix
def spin(status):
    for _ in range(2 * 10**9): pass
def f(x):
    os._exit = posix._exit = spin
    return 1
