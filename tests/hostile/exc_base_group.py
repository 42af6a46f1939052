# group: exception
# input: 1
# expect: exc:BaseExceptionGroup
# why: an exit wrapped in a group passes every except Exception
def f(x): raise BaseExceptionGroup('g', [SystemExit(0), ValueError(), KeyboardInterrupt()])
