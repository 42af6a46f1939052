# group: forge
# input: 1
# expect: opaque
# why: a set whose members decide themselves what they equal
class E:
    def __init__(self, n): self.n = n
    def __hash__(self): return 1
    def __eq__(self, other): return False
    def __lt__(self, other): raise SystemExit
def f(x): return {E(1), E(1), 1}
