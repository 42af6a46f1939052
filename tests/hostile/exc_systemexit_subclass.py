# group: exception
# input: 1
# expect: exc:Quit
# why: leaves like sys.exit with a code that prints
class Quit(SystemExit):
    code = property(lambda self: print('out') or 0)
def f(x): raise Quit
