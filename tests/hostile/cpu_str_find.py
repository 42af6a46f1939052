# group: cpu
# input: 1
# expect: timeout
# why: quadratic splitting, one line of code
def f(x):
    s = 'ab' * 500000
    return sum(s.count('a' + 'b' * k) for k in range(1, 10**6))
