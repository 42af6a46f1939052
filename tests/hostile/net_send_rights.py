# group: net
# input: 1
# expect: exc:PermissionError|violation|noresult
# why: passes a descriptor to the supervisor and makes it hold one more
import array, socket
def f(x):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=3)
    return s.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [3]))])
