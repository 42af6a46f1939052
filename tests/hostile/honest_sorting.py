# group: honest
# input: ['pear', 'fig', 'apple', 'kiwi']
# expect: ok:['fig', 'kiwi', 'pear', 'apple']
# why: sorting by two keys
def f(words): return sorted(words, key=lambda w: (len(w), w))
