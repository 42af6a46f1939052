# group: exception
# input: 1
# expect: exc:badname
# why: a class without a name
def f(x): raise type('', (Exception,), {})()
