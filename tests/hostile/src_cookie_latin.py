# group: source
# input: 1
# expect: ok:1
# why: a coding cookie below the header has no effect
# -*- coding: latin-1 -*-
def f(x): return len("é")
