# group: honest
# input: 0.1, 0.2
# expect: ok:[0.30000000000000004, 0.02, 1e+22, 1e-07, inf]
# why: floats keep their shortest text
def f(a, b): return [a + b, round(a * b, 10), 1e22, 1e-7, 1e308 * 10]
