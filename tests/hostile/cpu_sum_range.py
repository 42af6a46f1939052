# group: cpu
# input: 1
# expect: timeout
# why: sum over a huge range: no bytecode is executed meanwhile
def f(x): return sum(range(3 * 10**9))
