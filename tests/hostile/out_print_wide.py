# group: output
# input: 1
# expect: toolong|exc:OSError
# why: sixty thousand characters of three bytes each are over a limit that counts bytes
def f(x):
    print('\u4e16' * 60_000)
    return 1
