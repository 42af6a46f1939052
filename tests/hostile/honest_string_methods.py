# group: honest
# input: 'Hello, World'
# expect: ok:['hELLO, wORLD', 'dlroW ,olleH', {'o': 2, 'l': 3}, 'Uryyb, Jbeyq']
# why: strings
def f(s):
    table = str.maketrans({chr(b + i): chr(b + (i + 13) % 26) for b in (65, 97) for i in range(26)})
    return [s.swapcase(), s[::-1], {c: s.count(c) for c in 'ol'}, s.translate(table)]
