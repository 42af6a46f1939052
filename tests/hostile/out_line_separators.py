# group: output
# input: 1
# expect: ok:'\x0b\x0c\x1c\x85\u2028\r\n'
# why: all that splitlines splits at
def f(x): return '\x0b\x0c\x1c\x85\u2028\r\n'
