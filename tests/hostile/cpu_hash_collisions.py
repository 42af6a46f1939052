# group: cpu
# input: 1
# expect: timeout
# why: integers that all hash to zero make one dict quadratic
def f(x):
    m = (1 << 61) - 1
    return len({m * i: i for i in range(30000)})
