# group: forge
# input: 1
# expect: ok:1
# why: io, os and sys lose the functions that a harness may use late
import io, sys
def f(x):
    io.StringIO = io.TextIOWrapper = io.BytesIO = None
    sys.stdout = sys.stderr = sys.stdin = None
    sys.modules['os'] = sys.modules['io'] = sys.modules['json'] = None
    return 1
