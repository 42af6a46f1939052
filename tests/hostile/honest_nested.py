# group: honest
# input: {'a': [1, (2, 3)], 'b': {'c': None}}
# expect: ok:{'a': [1, (2, 3), {1, 2}], 'b': {'c': [None, b'x', 1.5]}}
# why: containers in containers
def f(d):
    d['a'].append({2, 1})
    d['b']['c'] = [d['b']['c'], b'x', 1.5]
    return d
