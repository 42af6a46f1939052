# group: forge
# input: 1
# expect: noresult|badreply|toolong|timeout
# why: 256 MB down the reply socket: the host caps what it keeps
import os
def f(x):
    for _ in range(4096): os.write(3, b'A' * 65536)
    return 1
