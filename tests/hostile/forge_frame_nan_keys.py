# group: forge
# input: 1
# expect: ok*|badreply|noresult
# why: a dict with three NaN keys, which equal nothing, not even themselves
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
    os.write(3, frame_with('ok {nan: 1, nan: 2, nan: 3}'))
    os._exit(0)
