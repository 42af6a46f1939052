# group: net
# input: 1
# expect: exc:PermissionError
# why: a pair of its own
import socket
def f(x): return len(socket.socketpair())
