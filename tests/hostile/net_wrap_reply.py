# group: net
# input: 1
# expect: exc:PermissionError|violation|noresult
# why: the reply socket as a Python socket, then a receive; the object closes the socket when it dies, so the reply may be lost
import socket
def f(x): return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=3).recv(100)
