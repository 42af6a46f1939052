# group: net
# input: 1
# expect: exc:PermissionError
# why: a numeric address through getaddrinfo, each result tried in turn
import socket
def f(x): return socket.create_connection((b'127.0.0.1', 45991), timeout=2)
