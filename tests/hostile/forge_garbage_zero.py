# group: forge
# input: 1
# expect: noresult|badreply
# why: empty frames in front of the real reply
import os
def f(x):
    os.write(3, bytes(64))
    return 1
