# group: stack
# input: 1
# expect: crash
# why: a write to an address that is not mapped
import ctypes
def f(x): ctypes.memset(0xdead0000, 0x41, 8)
