# group: source
# input: 1
# expect: exc:NameError
# why: no program at all
