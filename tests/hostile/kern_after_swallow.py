# group: kernel
# input: 1
# expect: ok:'still refused'|violation
# why: a refusal stays a refusal: tried a thousand times
import os
def f(x):
    for _ in range(1000):
        try: os.open('/tmp/redqueen-canary/secret.txt', os.O_RDONLY)
        except PermissionError: continue
        return 'opened'
    return 'still refused'
