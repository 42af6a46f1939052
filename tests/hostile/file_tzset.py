# group: file
# input: 1
# expect: ok:1|exc:PermissionError|violation
# why: the C library opens the file named in TZ
import os, time
def f(x):
    os.environ['TZ'] = ':/tmp/redqueen-canary/secret.txt'
    time.tzset()
    return 1 if 'SECRET' not in ''.join(time.tzname).upper() else 0
