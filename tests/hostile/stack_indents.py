# group: stack
# input: 1
# expect: exc:IndentationError
# why: two hundred levels of indentation in generated code
def f(x): exec(''.join(' ' * i + 'if 1:\n' for i in range(200)) + ' ' * 200 + 'pass')
