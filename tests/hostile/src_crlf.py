# group: source
# input: 1
# expect: ok:'a\nb'
# why: line ends of another system
def f(x):
    return '''a
b'''
