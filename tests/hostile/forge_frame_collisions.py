# group: forge
# input: 1
# expect: ok*|toolong|badreply|noresult
# why: integers that all hash alike, so that the host's dict is quadratic: short enough not to matter
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
    m = (1 << 61) - 1
    os.write(3, frame_with('ok {' + ', '.join(str(m * i) for i in range(900)) + '}'))
    os._exit(0)
