# group: source
# input: 5
# expect: ok:15
# why: f is an instance with __call__
class A:
    def __init__(self, k): self.k = k
    def __call__(self, x): return x * self.k
f = A(3)
