# group: net
# input: 1
# expect: exc:PermissionError
# why: sockets to the hypervisor do not care about network namespaces
import socket
def f(x): return socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).connect((2, 45991))
