# group: forge
# input: 1
# expect: noresult|badreply
# why: a length prefix of all ones in front of the real reply must not make the host wait or allocate
import os
def f(x):
    os.write(3, b'\xff' * 64)
    return 1
