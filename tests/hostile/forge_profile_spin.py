# group: forge
# input: 1
# expect: timeout
# why: the profile hook of its own return event never comes back
import sys
def spin(*event):
    sys.setprofile(None)
    for _ in range(2 * 10**9): pass
def f(x):
    sys.setprofile(spin)
    return 1
