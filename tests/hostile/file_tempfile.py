# group: file
# input: 1
# expect: exc:PermissionError
# why: a temporary file in a shared place
import tempfile
def f(x): return tempfile.NamedTemporaryFile(dir='/dev/shm', prefix='redqueen-').name
