# group: nondet
# input: 1
# expect: nondet
# why: the module's own generator without a seed
import random
def f(x):
    cards = list(range(52))
    random.shuffle(cards)
    return cards
