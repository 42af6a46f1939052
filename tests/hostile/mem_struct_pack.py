# group: memory
# input: 1
# expect: memory
# why: pad bytes by count
import struct
def f(x): return len(struct.pack('2000000000x'))
