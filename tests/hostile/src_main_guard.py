# group: source
# input: 1
# expect: ok:1
# why: the main guard does not run
def f(x): return 1
if __name__ == '__main__':
    raise SystemExit('ran')
