# group: output
# input: 1
# expect: ok:1|exc:UnicodeEncodeError
# why: prints what cannot be encoded
def f(x):
    print('\ud800')
    return 1
