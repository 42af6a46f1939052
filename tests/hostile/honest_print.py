# group: honest
# input: 3
# expect: ok:6
# why: debug output does not disturb
def f(n):
    total = 0
    for i in range(n + 1):
        print('adding', i, flush=True)
        total += i
    return total
