# group: cpu
# input: 1
# expect: timeout
# why: spins while f is being defined
def spin(function):
    for _ in range(2 * 10**9): pass
@spin
def f(x): return 1
