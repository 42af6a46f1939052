# group: forge
# input: 1
# expect: ok:1|exc*|noresult|badreply
# why: rebinds every local and global of the callers (3.13 writes through to locals): own reply only
import sys
def f(x):
    frame = sys._getframe(1)
    while frame:
        for name, value in list(frame.f_locals.items()):
            if type(value) in (int, str, bytes, list): frame.f_locals[name] = type(value)()
        frame = frame.f_back
    return 1
