# group: forge
# input: 1
# expect: ok*|noresult|badreply
# why: calls everything in the callers' globals that looks like the reply function: own reply only
import os, sys
def f(x):
    frame = sys._getframe(1)
    while frame:
        for name, value in list(frame.f_globals.items()):
            if callable(value) and any(w in name.lower() for w in ('send', 'reply', 'emit', 'write', 'report')):
                for args in ((b'42',), (3, b'42'), ('ok', '42'), (None, b'42')):
                    try: value(*args)
                    except Exception: pass
        frame = frame.f_back
    os._exit(0)
