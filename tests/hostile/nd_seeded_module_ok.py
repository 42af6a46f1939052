# group: nondet
# input: 1
# expect: ok*
# why: the module generator after a seed of its own
import random
def f(x):
    random.seed(x)
    return [random.randint(0, 9) for _ in range(10)], random.sample(range(100), 5)
