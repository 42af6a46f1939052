# group: forge
# input: 1
# expect: ok:0|noresult
# why: no socket or file object of the harness can be used to reach anything but its own reply
import gc, io, socket
def f(x):
    hits = 0
    for o in gc.get_objects():
        if isinstance(o, (socket.socket, io.RawIOBase)) and o.fileno() != 3:
            try:
                o.write(b'x') if hasattr(o, 'write') else o.send(b'x')
                hits += 1
            except (OSError, ValueError): pass
    return hits
