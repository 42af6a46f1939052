# group: exception
# input: 1
# expect: memory|exc:Mem
# why: a MemoryError subclass under another name
class Mem(MemoryError): pass
def f(x): raise Mem
