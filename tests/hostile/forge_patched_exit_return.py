# group: forge
# input: 1
# expect: violation|noresult|crash|ok:1
# why: if the harness cannot leave it falls back into its own caller, which must have nothing left to misuse
import os
def f(x):
    os._exit = lambda status: None
    return 1
