# group: honest
# input: 8
# expect: ok:[0, 1, 1, 2, 3, 5, 8, 13]
# why: generators and islice
from itertools import islice
def fib():
    a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b
def f(n): return list(islice(fib(), n))
