# group: net
# input: 1
# expect: exc:PermissionError
# why: netlink tells about interfaces and routes
import socket
def f(x): return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).getsockname()
