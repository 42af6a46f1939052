# group: exception
# input: 1
# expect: exc:badname
# why: a name with a separator, a space and a colon in it
def f(x): raise type('A|ok:42 ', (Exception,), {})()
