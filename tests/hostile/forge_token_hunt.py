# group: forge
# input: 1
# expect: noresult|badreply|ok*
# why: every byte string in the callers' frames may be a reply token: all are tried as a prefix
import os, sys
def f(x):
    frame, tokens = sys._getframe(1), []
    while frame:
        for value in [*frame.f_locals.values(), *frame.f_globals.values()]:
            if type(value) in (bytes, bytearray) and 4 <= len(value) <= 64: tokens.append(bytes(value))
            if type(value) is str and 8 <= len(value) <= 64: tokens.append(value.encode())
        frame = frame.f_back
    for token in tokens[:200]: os.write(3, token + b' ok:42\n')
    os._exit(0)
