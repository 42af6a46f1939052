# group: honest
# input: [5, 3, 9, 1]
# expect: ok:[4.5, 4.0, 2, 135, '1-3-5-9', 'Ab Cd', 720]
# why: one call into each of several modules
import bisect, functools, math, operator, statistics, string
def f(xs):
    s = sorted(xs)
    return [statistics.mean(xs), statistics.median(xs), bisect.bisect(s, 3), functools.reduce(operator.mul, xs),
            '-'.join(map(str, s)), string.capwords('ab cd'), math.factorial(6)]
