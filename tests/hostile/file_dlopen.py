# group: file
# input: 1
# expect: exc:OSError|exc:PermissionError
# why: loads a shared object from a folder that anybody can write to
import ctypes
def f(x): return ctypes.CDLL('/tmp/redqueen-canary/evil.so') and 1
