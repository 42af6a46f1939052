# group: forge
# input: 1
# expect: noresult|badreply
# why: a weak reference fires while f returns, just ahead of the reply
import os, weakref
class V: pass
REFS = []
def f(x):
    v = V()
    REFS.append(weakref.ref(v, lambda r: os.write(3, b'{"ok": 42}')))
    return 1
