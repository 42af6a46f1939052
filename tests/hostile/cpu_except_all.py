# group: cpu
# input: 1
# expect: timeout
# why: catches whatever would stop it and goes on
def f(x):
    n = 0
    while n < 2 * 10**9:
        try:
            n += 1
            raise KeyboardInterrupt
        except BaseException: pass
