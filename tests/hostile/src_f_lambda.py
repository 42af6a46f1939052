# group: source
# input: 5
# expect: ok:6
# why: f is a lambda
f = lambda x, *, k=1: x + k
