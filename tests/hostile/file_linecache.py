# group: file
# input: 1
# expect: ok:''
# why: a reader that swallows its errors
import linecache
def f(x): return linecache.getline('/etc/passwd', 1)
