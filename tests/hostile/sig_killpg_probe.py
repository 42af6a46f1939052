# group: signal
# input: 1
# expect: exc:PermissionError
# why: probes its own group, which may hold the zygote
import os
def f(x): os.killpg(0, 0); return 'alive'
