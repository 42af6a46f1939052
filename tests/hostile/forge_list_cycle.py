# group: forge
# input: 1
# expect: toolong
# why: a list that contains itself has no finite text
def f(x):
    a = [1]
    a.append((a, a))
    return a
