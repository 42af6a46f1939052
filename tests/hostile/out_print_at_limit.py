# group: output
# input: 1
# expect: ok:1
# why: exactly 100,000 printed characters
def f(x):
    print('x' * 99_999)
    return 1
