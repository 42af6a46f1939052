# group: nondet
# input: 1
# expect: ok:'900150983cd24fb0d6963f7d28e17f72'
# why: a digest is not a hash()
import hashlib
def f(x): return hashlib.md5(b'abc').hexdigest()
