# group: source
# input: {'op': 'add', 'args': [1, 2]}
# expect: ok:3
# why: structural pattern matching
def f(x):
    match x:
        case {'op': 'add', 'args': [a, b]}: return a + b
        case _: return None
