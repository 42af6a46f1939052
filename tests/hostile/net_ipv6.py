# group: net
# input: 1
# expect: exc:PermissionError
# why: the other address family
import socket
def f(x): return socket.socket(socket.AF_INET6).connect(('::1', 45991))
