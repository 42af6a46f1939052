# group: file
# input: 1
# expect: exc*
# why: a debugger would read commands from the terminal
def f(x):
    breakpoint()
    raise ValueError
