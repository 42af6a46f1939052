# group: exception
# input: 1
# expect: exc:Odd|timeout
# why: asking the exception for its __class__ never returns
class Odd(Exception):
    @property
    def __class__(self):
        for _ in range(2 * 10**9): pass
def f(x): raise Odd
