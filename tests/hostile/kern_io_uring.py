# group: kernel
# input: 1
# expect: violation
# why: a ring does file and socket calls that no filter sees
import ctypes
def f(x):
    return ctypes.CDLL(None).syscall(425, 4, ctypes.create_string_buffer(120))
