# group: source
# input: 1
# expect: exc:TabError
# why: tabs and spaces that disagree
def f(x):
        if x:
	return 1
        return 2
