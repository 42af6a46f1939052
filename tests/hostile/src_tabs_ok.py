# group: source
# input: 1
# expect: ok:2
# why: consistent tabs
def f(x):
	if x:
		return 2
