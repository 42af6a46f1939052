# group: nondet
# input: 1
# expect: nondet
# why: which exception is raised depends on the seed
def f(x): raise type('E%d' % (hash('seed') & 0xffffff), (Exception,), {})
