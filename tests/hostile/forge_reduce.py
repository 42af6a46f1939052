# group: forge
# input: 1
# expect: opaque
# why: a harness that pickles results would run this in the trainer
import os
class R:
    def __reduce__(self): return (os.mkdir, ('/tmp/redqueen-canary/pickled',))
    def __reduce_ex__(self, protocol): return self.__reduce__()
    def __getstate__(self): return {}
def f(x): return [R()]
