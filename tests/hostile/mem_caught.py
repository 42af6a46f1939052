# group: memory
# input: 1
# expect: ok:'caught'
# why: a program may catch its own MemoryError and go on; what it holds stays under the limit
def f(x):
    try: return len(bytearray(1 << 31))
    except MemoryError: return 'caught'
