# group: output
# input: 1
# expect: ok:[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]
# why: twenty levels are fine
def f(x):
    for _ in range(20): x = [x]
    return x
