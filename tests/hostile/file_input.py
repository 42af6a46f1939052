# group: file
# input: 1
# expect: exc:EOFError
# why: asks the keyboard
def f(x): return input('password: ')
