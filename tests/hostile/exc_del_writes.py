# group: exception
# input: 1
# expect: exc:Bye|noresult|badreply
# why: the exception writes to the reply socket as it dies
import os
class Bye(Exception):
    def __del__(self): os.write(3, b'ok:42')
def f(x): raise Bye
