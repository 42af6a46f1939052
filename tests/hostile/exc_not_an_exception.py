# group: exception
# input: 1
# expect: exc:TypeError
# why: raising something that is no exception
def f(x): raise 'ok:42'
