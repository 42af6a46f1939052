# group: cpu
# input: 1
# expect: timeout
# why: a key comparison inside a lookup that spins
class K:
    def __hash__(self): return 1
    def __eq__(self, other):
        for _ in range(2 * 10**9): pass
def f(x): return {K(): 1}.get(K())
