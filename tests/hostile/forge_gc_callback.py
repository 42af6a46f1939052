# group: forge
# input: 1
# expect: timeout
# why: a collector callback that spins
import gc
def spin(phase, info):
    for _ in range(2 * 10**9): pass
def f(x):
    gc.callbacks.append(spin)
    gc.collect()
    return 1
