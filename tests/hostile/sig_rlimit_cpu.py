# group: signal
# input: 1
# expect: exc:PermissionError|violation
# why: reads and lifts the CPU limit through the resource module
import resource
def f(x): return resource.prlimit(0, resource.RLIMIT_CPU, (resource.RLIM_INFINITY,) * 2)
