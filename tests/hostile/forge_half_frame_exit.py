# group: forge
# input: 1
# expect: noresult
# why: a truncated reply and a clean exit
import os
def f(x):
    os.write(3, b'\x00\x00\x00\x40ok')
    os._exit(0)
