# group: exception
# input: 1
# expect: exc:UserWarning
# why: a warning raised as an exception
def f(x): raise UserWarning('careful')
