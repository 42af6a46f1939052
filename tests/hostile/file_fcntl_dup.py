# group: file
# input: 1
# expect: exc:PermissionError
# why: duplicates by fcntl
import fcntl
def f(x): return fcntl.fcntl(3, fcntl.F_DUPFD, 100)
