# group: honest
# input: 12000
# expect: ok:[88, 30354, 21]
# why: dividing large integers imports a helper module lazily since 3.12
def f(n):
    q, r = divmod(10**n, 3**(n // 2))
    return [q % 97, q.bit_length(), r % 101]
