# group: honest
# input: 1
# expect: ok:[1]
# why: each verdict comes from a fresh process
def f(x, acc=[]):
    acc.append(x)
    return acc
