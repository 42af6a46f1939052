# group: process
# input: 1
# expect: exc:PermissionError
# why: Popen with close_fds off takes the vfork or posix_spawn path
import subprocess
def f(x): return subprocess.Popen(['/bin/true'], close_fds=False).wait()
