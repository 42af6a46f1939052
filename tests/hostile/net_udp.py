# group: net
# input: 1
# expect: exc:PermissionError
# why: one datagram to loopback
import socket
def f(x): return socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'leak', ('127.0.0.1', 45991))
