# group: exception
# input: 1
# expect: exc:badname
# why: a name that would clear the terminal
def f(x): raise type('\x1b[2J', (Exception,), {})()
