# group: net
# input: 1
# expect: exc:PermissionError|violation
# why: waits on the reply socket
import select
def f(x):
    p = select.poll()
    p.register(3)
    return p.poll(60_000)
