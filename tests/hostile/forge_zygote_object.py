# group: forge
# input: 1
# expect: ok:0|noresult
# why: the zygote's own objects are in the frames above: its descriptors must be closed here
import os, sys
def f(x):
    at, wrote = sys._getframe(1), 0
    while at:
        for value in at.f_locals.values():
            for name in dir(value):
                fd = getattr(value, name, None) if name.endswith('_fd') else None
                if type(fd) is int and fd != 3:
                    try: wrote += os.write(fd, b'x' * 20)
                    except OSError: pass
        at = at.f_back
    return wrote
