# group: forge
# input: 1
# expect: noresult|badreply
# why: one stray newline-terminated line in front of the real reply
import os
def f(x):
    os.write(3, b"ok 42\nok:42\n")
    return 1
