# group: memory
# input: 1
# expect: memory
# why: asks for a higher limit first, and allocates whatever the answer
import resource
def f(x):
    for which in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        try: resource.setrlimit(which, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        except (ValueError, OSError): pass
    return len(bytearray(1 << 31))
