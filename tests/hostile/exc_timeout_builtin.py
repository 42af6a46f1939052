# group: exception
# input: 1
# expect: exc:TimeoutError
# why: the exception is not the verdict
def f(x): raise TimeoutError
