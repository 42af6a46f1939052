# group: output
# input: 1
# expect: toolong
# why: over the limit, with the error swallowed: still over the limit
def f(x):
    for _ in range(300):
        try: print('y' * 1000)
        except OSError: pass
    return 1
