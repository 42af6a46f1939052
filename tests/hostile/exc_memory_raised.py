# group: exception
# input: 1
# expect: memory
# why: an uncaught MemoryError is the memory verdict, also when nothing was allocated
def f(x): raise MemoryError
