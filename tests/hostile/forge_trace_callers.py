# group: forge
# input: 1
# expect: ok:1|exc:RuntimeError|noresult
# why: a trace function planted in the callers' frames raises on their next line
import sys
def f(x):
    def trace(frame, event, arg): raise RuntimeError
    frame = sys._getframe(1)
    while frame:
        frame.f_trace = trace
        frame = frame.f_back
    sys.settrace(trace)
    return 1
