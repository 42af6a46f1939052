# group: source
# input: [3, 1, 2]
# expect: ok:[1, 2, 3]
# why: f is a builtin
f = sorted
