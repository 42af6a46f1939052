# group: exception
# input: 1
# expect: exc:ZeroDivisionError
# why: the constructor fails with another exception
class E(Exception):
    def __init__(self): 1 / 0
def f(x): raise E
