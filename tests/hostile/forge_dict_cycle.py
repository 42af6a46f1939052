# group: forge
# input: 1
# expect: toolong
# why: a dict that is its own value
def f(x):
    d = {}
    d['d'] = {'again': d}
    return d
