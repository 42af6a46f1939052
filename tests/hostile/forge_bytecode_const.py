# group: forge
# input: 1
# expect: crash|exc:SystemError
# why: hand-made bytecode loads constants far outside its table
def g(x): return x
def f(x):
    import opcode
    op = opcode.opmap
    code = bytes([op['RESUME'], 0, op['EXTENDED_ARG'], 255, op['EXTENDED_ARG'], 255, op['LOAD_CONST'], 255, op['RETURN_VALUE'], 0])
    g.__code__ = g.__code__.replace(co_code=code)
    return [g(x)]
