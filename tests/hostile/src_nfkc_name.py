# group: source
# input: 7
# expect: ok:7
# why: identifiers are normalised: a script f is f
def 𝒻(x): return x
