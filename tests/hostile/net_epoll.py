# group: net
# input: 1
# expect: exc:PermissionError|violation
# why: an epoll descriptor
import select
def f(x): return select.epoll().fileno()
