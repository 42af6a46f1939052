# group: honest
# input: 300
# expect: ok:[62, 1987]
# why: a sieve and some arithmetic well under the limit
def f(n):
    sieve = [True] * (2000)
    for i in range(2, 45):
        if sieve[i]: sieve[i * i::i] = [False] * len(sieve[i * i::i])
    primes = [i for i in range(2, 2000) if sieve[i]]
    return [sum(p <= n for p in primes), max(p for p in primes if p < 1990)]
