# group: net
# input: 1
# expect: ok:-13
# why: raw frames
import socket
def f(x):
    try: return socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3).fileno()
    except OSError as e: return -e.errno
