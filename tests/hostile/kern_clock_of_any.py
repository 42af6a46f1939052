# group: kernel
# input: 400
# expect: ok:{'PermissionError': 6400}
# why: asks for the CPU clock of every process and thread, and learns who is there
import time
def f(n):
    seen = {}
    for pid in range(n):
        for kind in range(8):
            for ask in (time.clock_gettime, time.clock_getres):
                try:
                    ask(~pid << 3 | kind)
                    word = 'found'
                except OSError as error:
                    word = type(error).__name__
                seen[word] = seen.get(word, 0) + 1
    return seen
