# group: honest
# input: 1, 2
# expect: ok:[(1+2j), (-3+4j), 2.23606797749979, (1-2j)]
# why: complex numbers
def f(a, b):
    z = complex(a, b)
    return [z, z * z, abs(z), z.conjugate()]
