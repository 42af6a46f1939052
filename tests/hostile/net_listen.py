# group: net
# input: 1
# expect: exc:PermissionError
# why: opens a port
import socket
def f(x): return socket.create_server(('127.0.0.1', 0)).getsockname()
