# group: cpu
# input: 1
# expect: timeout
# why: continue in finally throws exceptions away for ever
def f(x):
    for _ in range(10**9):
        try: raise SystemExit
        finally: continue
