# group: file
# input: 1
# expect: exc:PermissionError
# why: asks for SIGIO to be sent to the parent
import fcntl, os
def f(x): return fcntl.fcntl(3, fcntl.F_SETOWN, os.getppid())
