# group: process
# input: 1
# expect: exc:PermissionError|violation
# why: changes its scheduling
import os
def f(x): return os.setpriority(os.PRIO_PGRP, 0, 19)
