# group: file
# input: 1
# expect: exc:OSError|exc:PermissionError
# why: the text of a standard module, read back from disk
import inspect, textwrap
def f(x): return inspect.getsource(textwrap.dedent)[:3]
