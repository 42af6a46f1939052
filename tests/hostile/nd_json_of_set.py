# group: nondet
# input: 1
# expect: nondet
# why: the order gets into a text
import json
def f(x): return json.dumps({w: len(w) for w in frozenset('the quick brown fox jumps over a lazy dog'.split())})
