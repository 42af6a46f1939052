# group: forge
# input: 1
# expect: ok:42
# why: a perfect reply made with the stolen token: a lie about its own value, which is all it can lie about
import os, sys
def frame_with(line):
    at = sys._getframe(1)
    while at:
        for value in list(at.f_locals.values()):
            token = value.get('token') if type(value) is dict else getattr(value, 'token', None)
            if type(token) is str: return (token + '\n' + line + '\nend\n').encode()
        at = at.f_back
    raise LookupError('no token')

def f(x):
    os.write(3, frame_with('ok 42'))
    os._exit(0)
