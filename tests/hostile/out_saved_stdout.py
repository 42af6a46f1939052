# group: output
# input: 1
# expect: ok:1|exc*|toolong
# why: the interpreter's original streams lead nowhere
import sys
def f(x):
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None:
            stream.write('leak'); stream.flush()
    return 1
