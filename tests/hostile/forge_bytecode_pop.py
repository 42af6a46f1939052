# group: forge
# input: 1
# expect: crash|exc:SystemError
# why: hand-made bytecode pops a stack that it never filled
def g(x): return x
def f(x):
    import opcode
    pop = bytes([opcode.opmap['POP_TOP'], 0])
    g.__code__ = g.__code__.replace(co_code=pop * 4000)
    return g(x)
