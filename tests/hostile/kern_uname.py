# group: kernel
# input: 1
# expect: exc:PermissionError|violation
# why: the host name is not for the guest
import os
def f(x): return os.uname().nodename
