# group: exception
# input: 1
# expect: exc:LookupError
# why: the source itself raises before f is defined
raise LookupError
def f(x): return 1
