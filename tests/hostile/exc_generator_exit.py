# group: exception
# input: 1
# expect: exc:GeneratorExit
# why: a BaseException that frameworks tend to swallow
def f(x): raise GeneratorExit
