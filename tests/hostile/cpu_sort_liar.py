# group: cpu
# input: 1
# expect: timeout
# why: a comparison that never ends, called from inside list.sort
class K:
    def __lt__(self, other):
        for _ in range(2 * 10**9): pass
def f(x): return len(sorted([K(), K(), K()]))
