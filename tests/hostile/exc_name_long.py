# group: exception
# input: 1
# expect: exc:badname
# why: a name of a million letters
def f(x): raise type('E' * 10**6, (Exception,), {})()
