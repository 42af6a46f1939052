# group: net
# input: 1
# expect: exc:PermissionError
# why: the kernel's crypto sockets have a history of holes
import socket
def f(x): return socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET, 0).fileno()
