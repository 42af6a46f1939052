# group: process
# input: 1
# expect: exc:PermissionError
# why: the C helper below subprocess
import _posixsubprocess
def f(x):
    args = [[b'/bin/true'], (b'/bin/true',), True, (3,), None, None, -1, -1, -1, -1, -1, -1, 3, 3, False, False]
    return _posixsubprocess.fork_exec(*args, 0, None, None, None, -1, None, True)
