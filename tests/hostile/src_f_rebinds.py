# group: source
# input: 1
# expect: ok:1
# why: f replaces itself while it runs
def f(x):
    global f
    f = None
    return 1
