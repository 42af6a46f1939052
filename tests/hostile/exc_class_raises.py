# group: exception
# input: 1
# expect: exc:Odd|noresult
# why: asking the exception for its __class__ raises another of its kind
class Odd(Exception):
    @property
    def __class__(self): raise Odd
def f(x): raise Odd
