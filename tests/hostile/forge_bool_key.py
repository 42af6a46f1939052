# group: forge
# input: 1
# expect: opaque
# why: the forged object hides as a dict key, where it hashes and compares like a real one
class K(str):
    def __hash__(self): return hash('real')
    def __eq__(self, other): return other == 'real'
def f(x): return {K('fake'): 1}
