# group: process
# input: 1
# expect: ok:1
# why: hooks that would run in the zygote's next child, if they were registered there
import os
def f(x):
    os.register_at_fork(before=lambda: os._exit(9), after_in_child=lambda: os._exit(9))
    return 1
