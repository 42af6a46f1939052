# group: file
# input: 1
# expect: exc:PermissionError
# why: wraps standard input, which may be the parent's terminal
def f(x): return open(0, closefd=False).read(1)
