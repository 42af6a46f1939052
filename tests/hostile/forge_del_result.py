# group: forge
# input: 1
# expect: opaque|timeout
# why: the result refuses to die: its destructor runs when the harness lets go of it
class D:
    def __del__(self):
        for _ in range(2 * 10**9): pass
def f(x): return [1, D()]
