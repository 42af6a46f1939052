# group: cpu
# input: 1
# expect: timeout|memory
# why: repeated squaring of an integer
def f(x):
    n = 3
    for _ in range(31): n *= n
    return n % 10
