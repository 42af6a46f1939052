# group: exception
# input: 1
# expect: exc:StopIteration
# why: would end a loop in a harness that drives calls through a generator
def f(x): raise StopIteration(42)
