# group: forge
# input: 1
# expect: noresult|badreply|ok*
# why: plausible frames in several encodings, then exit: at best a lie about its own value
import json, os, struct
def f(x):
    for body in (b'ok:42', b'42', json.dumps(['ok', '42']).encode(), json.dumps({'verdict': 'ok:42'}).encode()):
        for form in ('<I', '>I', '<Q', '>Q', '<H', '>H'):
            os.write(3, struct.pack(form, len(body)) + body)
    os._exit(0)
